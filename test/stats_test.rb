# frozen_string_literal: true

require "test_helper"

class StatsTest < ZstdTest
  MEMBERS = %i[calls releases holds interrupted wait_total wait_max contexts pooled_contexts].freeze

  # Every call releases: what the guard may save is not the question here.
  def setup
    Zstd.convoy_guard = false
  end

  def test_stats_are_a_frozen_struct_of_numbers
    stats = Zstd.stats
    assert_kind_of Struct, stats
    assert_instance_of Zstd::Stats, stats
    assert_equal MEMBERS, stats.members
    assert_predicate stats, :frozen?
    stats.each_pair do |name, value|
      assert_kind_of Numeric, value, name
      assert_operator value, :>=, 0, name
    end
    assert_operator stats.wait_total, :>=, stats.wait_max
    assert_operator stats.contexts, :>=, stats.pooled_contexts
  end

  def test_stats_are_a_snapshot
    stats = Zstd.stats
    before = stats.to_h
    Zstd.compress("a")
    assert_equal before, stats.to_h
    refute_equal before, Zstd.stats.to_h
  end

  def test_reset_sets_the_counters_to_zero_and_forgets_no_context
    Zstd.decompress(Zstd.compress(text(100_000)))
    contexts = Zstd.stats.contexts
    Zstd.stats.reset
    stats = Zstd.stats
    %i[calls releases holds interrupted wait_total wait_max].each { |name| assert_equal 0, stats[name], name }
    assert_equal contexts, stats.contexts
    assert_operator contexts, :>, 0
    Zstd.compress("a")
    assert_equal 1, Zstd.stats.calls
  end

  def test_every_call_is_counted_and_releases_once
    packed = Zstd.compress("a" * 64)
    { "compress" => -> { Zstd.compress("a" * 64) }, "decompress" => -> { Zstd.decompress(packed) },
      "deflate" => -> { Zstd.deflate("") }, "inflate" => -> { Zstd.inflate(packed) },
      "compress 3 MiB" => -> { Zstd.compress(text(3 * MIB)) } }.each do |name, call|
      counts = counted { 10.times { call.call } }
      assert_equal({ calls: 10, releases: 10, holds: 0 }, counts.slice(:calls, :releases, :holds), name)
    end
  end

  # The price of coming back for the lock beside a busy thread is a time slice, so a call comes back once.
  def test_a_decompress_of_known_size_releases_once_whatever_its_size
    noisy = Zstd.compress(noise(10 * MIB))
    { "64 B" => Zstd.compress("a" * 64), "1 MiB" => Zstd.compress(text(MIB)), "64 MiB" => FrameBuilder.zeros(64 * MIB),
      "noise" => noisy, "40 frames" => Zstd.compress(text(200_000)) * 40,
      "raw" => frame(*([raw(noise(BLOCK))] * 50), content_size: 50 * BLOCK, window_log: 20) }.each do |name, packed|
      assert_equal 1, counted { Zstd.decompress(packed) }[:releases], name
    end
  end

  def test_a_decompress_of_a_gigabyte_releases_once
    slow_test
    need_memory 3
    assert_child <<~'RUBY'
      Zstd.convoy_guard = false
      packed = Zstd.compress("\0" * (1 << 30))
      abort "compress released #{Zstd.stats.releases} times" unless Zstd.stats.releases == 1
      GC.start
      { "made by compress" => packed, "rle" => FrameBuilder.zeros(1 << 30) }.each do |name, bytes|
        Zstd.stats.reset
        out = Zstd.decompress(bytes)
        abort "#{name}: #{Zstd.stats}" unless Zstd.stats.releases == 1 && Zstd.stats.calls == 1
        abort "#{name}: wrong" unless out.bytesize == 1 << 30 && out.count("\0") == 1 << 30
        out.clear
      end
    RUBY
  end

  def test_a_decompress_of_unknown_size_releases_a_logarithm_of_times
    [1, 2, 5, 16, 64].each do |mib|
      { "text" => FrameBuilder.without_content_size(Zstd.compress(text(mib * MIB))),
        "zeros" => FrameBuilder.without_content_size(Zstd.compress(Corpus.zeros(mib * MIB))),
        "rle" => FrameBuilder.zeros(mib * MIB, declared: false),
        "raw" => frame(*([raw(noise(BLOCK))] * (mib * 8)), window_log: 20) }.each do |kind, packed|
        releases = counted { assert_equal mib * MIB, Zstd.decompress(packed).bytesize }[:releases]
        assert_operator releases, :<=, 2 + Math.log2(mib), "#{mib} MiB of #{kind}"
      end
    end
  end

  # What the headers already show needs no work, and so no release.
  def test_failed_calls_are_counted_when_work_was_done
    packed = Zstd.compress("x" * 5000, checksum: true)
    bent = packed.dup.tap { |bytes| bytes.setbyte(-1, bytes.getbyte(-1) ^ 1) }
    counts = counted { 20.times { assert_error(Zstd::ChecksumError) { Zstd.decompress(bent) } } }
    assert_equal [20, 20], counts.values_at(:calls, :releases)
    counts = counted { assert_error(Zstd::TruncatedError) { Zstd.decompress(packed.byteslice(0, 20)) } }
    assert_equal [0, 0], counts.values_at(:calls, :releases)
  end

  def test_contexts_are_reused_not_piled_up
    assert_child <<~'RUBY'
      input = Corpus.text(50_000)
      packed = Zstd.compress(input)
      run = ->(count) { count.times { |i| Zstd.compress(input, level: 1 + (i % 9)); Zstd.decompress(packed) } }
      run[20]
      before = Zstd.stats.contexts
      run[500]
      abort "#{before} contexts, then #{Zstd.stats.contexts}" if Zstd.stats.contexts > before
      abort "nothing pooled" unless Zstd.stats.pooled_contexts.positive?
      Array.new(16) { Thread.new { run[20] } }.each(&:join)
      abort "not all given back: #{Zstd.stats}" unless Zstd.stats.contexts == Zstd.stats.pooled_contexts
      abort "no bound: #{Zstd.stats}" if Zstd.stats.contexts > 64
    RUBY
  end

  # A level-19 context is tens of MiB: kept, it would look like a leak.
  def test_large_contexts_are_not_kept
    need_proc
    assert_child <<~'RUBY'
      input = Corpus.hard(6 << 20)
      Zstd.compress(input, level: 3)
      GC.start
      before = Probe.memory_kb
      Zstd.compress(input, level: 19)
      GC.start
      grown = Probe.memory_kb - before
      abort "keeps #{grown} KiB" if grown > 24 << 10
    RUBY
  end
end
