# frozen_string_literal: true

require "test_helper"

class GcTest < ZstdTest
  class Stringlike
    def initialize(string) = @string = string
    # A new String at each call, held by nobody but the call.
    def to_str = @string.dup
  end

  # One call of every public method, each with an answer to compare, errors included.
  def every_method
    packed = Zstd.compress("small input " * 10, checksum: true)
    unknown = FrameBuilder.without_content_size(Zstd.compress(text(5000)))
    {
      "compress" => -> { Zstd.compress("small input " * 10, level: 1, checksum: true) },
      "compress to_str" => -> { Zstd.compress(Stringlike.new("abc" * 100)) },
      "compress heap" => -> { Zstd.compress(text(5000)) },
      "decompress" => -> { Zstd.decompress(packed) },
      "decompress limits" => -> { Zstd.decompress(packed, max_output_size: 120, window_log_max: 20) },
      "decompress to_str" => -> { Zstd.decompress(Stringlike.new(packed)) },
      "decompress unknown" => -> { Zstd.decompress(unknown) },
      "decompress frames" => -> { Zstd.decompress(packed + FrameBuilder.skippable("x") + unknown) },
      "deflate, inflate" => -> { Zstd.inflate(Zstd.deflate("value")) },
      "truncated" => -> { fault { Zstd.decompress(packed[0..-2]) } },
      "text" => -> { fault { Zstd.decompress("plain text") } },
      "limit" => -> { fault { Zstd.decompress(unknown, max_output_size: 4999) } },
      "level" => -> { fault { Zstd.compress("a", level: 99) } }, "type" => -> { fault { Zstd.compress(nil) } },
      "keyword" => -> { fault { Zstd.compress("a", nope: 1) } },
      "numbers" => -> { [Zstd.compress_bound(100), Zstd.zstd_version, Zstd.levels] },
      "switches" => -> { [Zstd.max_output_size, Zstd.convoy_guard, Zstd.huge_pages] },
      "stats" => -> { Zstd.stats.to_h.keys },
      "settings" => -> { [Zstd.max_output_size = 2**40, Zstd.convoy_guard = true] }
    }
  end

  def fault
    yield
  rescue StandardError => e
    [e.class, e.message, (e.code if e.respond_to?(:code))]
  end

  def test_every_method_under_gc_stress
    every_method.each do |name, call|
      right = call.call
      begin
        GC.stress = true
        result = call.call
      ensure
        GC.stress = false
      end
      assert_equal right, result, name
    end
  end

  # Moves every object that may move, then looks for references left behind.
  def test_every_method_survives_compaction
    verify = compaction || skip("this Ruby cannot verify compaction")
    in_fork do
      every_method.each do |name, call|
        right = call.call
        verify.call
        assert_equal right, call.call, name
      end
      verify.call
    end
  end

  # Other extensions in this process need not survive it (rbs 2.1 does not).
  def in_fork
    pid = fork do
      yield
      exit!(0)
    rescue Exception => e # rubocop:disable Lint/RescueException -- a failed assertion is one
      warn e.full_message
      exit!(1)
    end
    status = wait_for(pid, 120)
    assert status&.success?, "the child ended with #{status.inspect}"
  end

  # The keyword changed its name in Ruby 3.2.
  def compaction
    options = { toward: :empty }
    names = GC.method(:verify_compaction_references).parameters.map(&:last)
    options[names.include?(:expand_heap) ? :expand_heap : :double_heap] = true
    -> { GC.verify_compaction_references(**options) }
  rescue NameError, NotImplementedError
    nil
  end

  def test_compaction_during_calls_moves_nothing_they_use
    skip "this Ruby cannot compact" unless GC.respond_to?(:compact)
    inputs = ["embedded", text(2 * MIB), noise(3 * MIB)]
    in_fork do
      worker = Thread.new do
        6.times.all? { inputs.all? { |input| Zstd.decompress(Zstd.compress(input.dup, level: 1)) == input } }
      end
      rounds = 0
      until worker.join(0.001)
        GC.compact
        rounds += 1
      end
      assert worker.value
      assert_operator rounds, :>, 1
    end
  end

  def test_gc_runs_in_one_thread_while_others_are_in_mid_call
    stop = false
    collector = Thread.new { GC.start until stop }
    right = text(2 * MIB)
    threads = Array.new(3) { Thread.new { 5.times.all? { Zstd.decompress(Zstd.compress(right, level: 1)) == right } } }
    assert threads.all?(&:value)
  ensure
    stop = true
    collector&.join
  end

  def test_results_that_nobody_keeps_are_collected
    need_proc
    assert_child <<~'RUBY'
      packed = FrameBuilder.zeros(8 << 20)
      bad = FrameBuilder.zeros(8 << 20, checksum: 1)
      run = lambda do |count|
        count.times do
          Zstd.decompress(packed)
          abort "accepted" unless Probe.error { Zstd.decompress(bad) }.is_a?(Zstd::ChecksumError)
        end
      end
      run[50]
      GC.start
      before = Probe.memory_kb
      run[300]
      GC.start
      grown = Probe.memory_kb - before
      abort "grew by #{grown} KiB" if grown > 64 << 10
    RUBY
  end
end
