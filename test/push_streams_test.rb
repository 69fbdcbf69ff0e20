# frozen_string_literal: true

require "test_helper"

# Zstd::Compressor and Zstd::Decompressor.
class PushStreamsTest < ZstdTest
  ROWS = JSON.parse(File.read(File.join(DATA, "bugs", "manifest.json"))).reject { |row| row["dict"] }.freeze
  SMALL = 64 << 10
  LARGE = 64 * MIB
  # name => sizes of the pieces, in turn
  FEEDS = { "a byte at a time" => [1], "7 and 13" => [7, 13], "128 KiB - 3" => [BLOCK - 3],
            "128 KiB + 3" => [BLOCK + 3], "whole" => [1 << 40] }.freeze

  def pieces(bytes, sizes)
    sizes = sizes.cycle
    at = 0
    until at >= bytes.bytesize
      piece = bytes.byteslice(at, sizes.next)
      yield piece
      at += piece.bytesize
    end
  end

  # The bytes, or the class of the error: what a one-shot call answers.
  def one_shot(bytes, **options)
    Zstd.decompress(bytes, **options)
  rescue Zstd::Error => e
    e.class
  end

  def pushed(bytes, sizes, **options)
    stream = Zstd::Decompressor.new(**options)
    out = +"".b
    pieces(bytes, sizes) do |piece|
      out << stream.decompress(piece)
      break unless stream.unused.empty?
    end
    out << stream.finish
    stream.unused.empty? ? out : Zstd::TrailingDataError
  rescue Zstd::Error => e
    e.class
  end

  def pulled(bytes, most, **options)
    stream = Zstd::Decompressor.new(**options)
    out = stream.decompress(bytes, max_output: most)
    out << stream.decompress("", max_output: most) until stream.needs_input? || stream.finished?
    stream.finish
    stream.unused.empty? ? out : Zstd::TrailingDataError
  rescue Zstd::Error => e
    e.class
  end

  def assert_same_answer(expected, actual, message)
    return assert_bytes(expected, actual, message) if expected.is_a?(String) && actual.is_a?(String)

    assert_equal expected.to_s[0, 99], actual.to_s[0, 99], message
  end

  def each_input
    ROWS.each do |row|
      next if row["out_bytes"].to_i > LARGE

      yield row["file"], data("bugs", row["file"]), (row["options"] || {}).transform_keys(&:to_sym)
    end
    Dir[File.join(DATA, "golden", "golden-decompression*", "*")].sort.each do |path|
      yield File.basename(path), File.binread(path), {}
    end
  end

  def test_every_known_input_is_answered_as_by_a_one_shot_call_however_it_is_cut
    count = 0
    each_input do |name, bytes, options|
      expected = one_shot(bytes, **options)
      FEEDS.each do |feed, sizes|
        next if sizes.max < SMALL && (bytes.bytesize > SMALL || expected.to_s.bytesize > MIB)

        count += 1
        assert_same_answer expected, pushed(bytes, sizes, **options), "#{name}, #{feed}"
      end
      assert_same_answer expected, pulled(bytes, 1000, **options), "#{name}, pulled" if expected.to_s.bytesize < MIB
    end
    assert_operator count, :>, 200
  end

  def test_every_proper_prefix_is_truncated_and_gives_only_good_bytes
    whole = data("bugs", "B17a-truncate-base.zst")
    content = Zstd.decompress(whole)
    stream = Zstd::Decompressor.new
    (0...whole.bytesize).each do |size|
      stream.reset
      out = stream.decompress(whole.byteslice(0, size))
      assert content.start_with?(out), "prefix of #{size}"
      refute_predicate stream, :finished?
      assert_error(Zstd::TruncatedError, "prefix of #{size}") { stream.finish }
    end
  end

  def test_the_frame_does_not_depend_on_how_the_content_was_cut
    content = text(700_001) + noise(300_000) + Corpus.zeros(200_000)
    [-5, 1, 3, 9].each do |level|
      frames = [[1000, 7], [BLOCK], [BLOCK + 1], [1 << 40]].map do |sizes|
        stream = Zstd::Compressor.new(level:, checksum: true)
        out = +"".b
        pieces(content, sizes) { |piece| out << stream.compress(piece) }
        out << stream.finish
      end
      assert_equal 1, frames.uniq.size, "level #{level}"
      assert_bytes content, Zstd.decompress(frames.first), "level #{level}"
    end
  end

  def test_content_within_a_block_makes_the_frame_of_a_one_shot_call
    Corpus.small.each do |name, bytes|
      stream = Zstd::Compressor.new
      out = +"".b
      pieces(bytes, [100]) { |piece| out << stream.compress(piece) }
      assert_bytes Zstd.compress(bytes), out << stream.finish, name
    end
  end

  def test_what_was_flushed_can_be_decoded_at_once
    packer = Zstd::Compressor.new
    reader = Zstd::Decompressor.new
    [text(10), text(300_000), noise(5), text(1)].each do |message|
      wire = packer.compress(message) << packer.flush
      assert_bytes message, reader.decompress(wire)
      assert_predicate reader, :needs_input?
      refute_predicate reader, :finished?
    end
    assert_equal "", reader.decompress(packer.finish)
    assert_predicate reader, :finished?
    assert_equal [packer.total_in, packer.total_out], [reader.total_out, reader.total_in]
  end

  def test_appended_content_comes_out_first
    stream = Zstd::Compressor.new
    stream << text(200_000) << "b"
    out = stream.compress("c") << stream.finish
    assert_bytes "#{text(200_000)}bc", Zstd.decompress(out)
  end

  def test_a_pledge_is_written_and_must_be_kept
    content = text(200_000)
    stream = Zstd::Compressor.new(pledged_size: content.bytesize)
    frame = stream.compress(content) << stream.finish
    assert_bytes content, Zstd.decompress(frame, max_output_size: content.bytesize)
    assert_match(/by its frame headers/,
                 assert_error(Zstd::OutputLimitError) { Zstd.decompress(frame, max_output_size: 9) }.message)
    stream.reset(pledged_size: 3)
    assert_error(Zstd::PledgedSizeError) { stream.compress("four") }
    stream.reset(pledged_size: 3)
    stream << "ab"
    assert_error(Zstd::PledgedSizeError) { stream.finish }
    assert_error(Zstd::StreamError) { stream.finish }
    assert_raises(ArgumentError) { stream.reset(pledged_size: -1) }
  end

  def test_finish_twice_is_quiet_and_more_content_is_refused_until_reset
    stream = Zstd::Compressor.new
    assert_equal Zstd.compress(""), stream.finish
    assert_equal "", stream.finish
    assert_predicate stream, :finished?
    assert_error(Zstd::StreamError) { stream.compress("more") }
    assert_equal "", stream.finish
    assert_nil stream.reset
    refute_predicate stream, :finished?
    assert_equal "more", Zstd.decompress(stream.compress("more") << stream.finish)
  end

  def test_single_frame_leaves_the_rest_unused
    first = Zstd.compress("first")
    rest = Zstd.compress("second")
    skippable = [0x184D2A50, 3, "abc"].pack("VVa3")
    [[1], [4], [1 << 40]].each do |sizes|
      stream = Zstd::Decompressor.new(single_frame: true)
      out = +"".b
      fed = 0
      pieces(skippable + first + rest, sizes) do |piece|
        out << stream.decompress(piece)
        fed += piece.bytesize
        break if stream.finished?
      end
      assert_equal "first", out
      assert_equal skippable.bytesize + first.bytesize, stream.total_in
      assert_equal fed - stream.total_in, stream.unused.bytesize
      assert_equal "", stream.finish
    end
  end

  def test_bytes_after_the_last_frame_are_unused_and_no_more_are_taken
    stream = Zstd::Decompressor.new
    # Half a magic number that turns out to be none.
    out = stream.decompress(Zstd.compress("data") + "\x28\xB5".b)
    refute_predicate stream, :finished?
    out << stream.decompress("no frame")
    assert_equal "data", out
    assert_predicate stream, :finished?
    assert_equal "\x28\xB5no frame".b, stream.unused
    assert_error(Zstd::StreamError) { stream.decompress("x") }
    assert_equal "\x28\xB5no frame".b, stream.unused
    assert_equal "", stream.finish
  end

  def test_max_output_is_kept_to_and_the_rest_comes_later
    content = text(500_000)
    stream = Zstd::Decompressor.new
    buffer = +"x"
    parts = [stream.decompress(Zstd.compress(content), max_output: 7777, buffer:).dup]
    parts << stream.decompress("", max_output: 7777, buffer:).dup until stream.needs_input? || stream.finished?
    assert_operator parts.map(&:bytesize).max, :<=, 7777
    assert_bytes content, parts.join
    assert_raises(ArgumentError) { stream.decompress("", max_output: 0) }
  end

  def test_what_came_before_a_fault_is_given_out_in_pieces_but_not_as_a_whole
    good = Zstd.compress(text(300_000))
    bad = good + frame(FrameBuilder::Block.new(3, 1, "a"), content_size: 1)
    stream = Zstd::Decompressor.new
    assert_error(Zstd::CorruptedError) { stream.decompress(bad) }
    stream.reset
    assert_bytes text(300_000), stream.decompress(bad, max_output: MIB)
    refute_predicate stream, :needs_input?
    assert_error(Zstd::CorruptedError) { stream.decompress("", max_output: MIB) }
    assert_error(Zstd::StreamError) { stream.decompress("") }
    stream.reset
    out = +"".b
    assert_error(Zstd::CorruptedError) { stream.decompress(bad) { |chunk| out << chunk } }
    assert_bytes text(300_000), out
  end

  # libzstd's stepped decoder does not compare the size where the last block is empty.
  def test_a_declared_size_that_an_empty_last_block_hides_is_a_lie_that_is_seen
    packer = Zstd::Compressor.new
    body = (packer.compress(text(1000)) << packer.flush).byteslice(9..)
    compressed = FrameBuilder::Block.new(2, body.bytesize, body)
    [0, 10].each do |blocks|
      before = Array.new(blocks) { rle("a", BLOCK) }
      size = (blocks * BLOCK) + 1000
      honest = frame(*before, compressed, raw(""), content_size: size)
      assert_equal size, Zstd.decompress(honest).bytesize
      assert_same_answer Zstd.decompress(honest), pushed(honest, [1 << 40]), "honest"
      lying = frame(*before, compressed, raw(""), content_size: size + 9)
      assert_error(Zstd::CorruptedError, "one-shot, #{blocks}") { Zstd.decompress(lying) }
      FEEDS.each { |feed, sizes| assert_equal Zstd::CorruptedError, pushed(lying, sizes), "#{feed}, #{blocks}" }
    end
    assert_equal Zstd::CorruptedError, pushed(frame(raw(""), content_size: 94), [3])
  end

  def test_the_output_limit_is_exact_and_counts_all_frames
    packer = Zstd::Compressor.new
    unknown = packer.compress(Corpus.zeros(MIB)) << packer.finish
    [unknown, unknown + unknown].each_with_index do |bytes, index|
      size = MIB * (index + 1)
      stream = Zstd::Decompressor.new(max_output_size: size)
      assert_equal size, stream.decompress(bytes).bytesize
      stream = Zstd::Decompressor.new(max_output_size: size - 1)
      given = 0
      assert_error(Zstd::OutputLimitError) { stream.decompress(bytes) { |chunk| given += chunk.bytesize } }
      assert_operator given, :<=, size - 1
    end
  end

  def test_a_block_left_early_loses_no_input
    content = noise(2 * MIB)
    packed = Zstd.compress(content)
    stream = Zstd::Decompressor.new
    out = +"".b
    assert_equal :left, (stream.decompress(packed) do |chunk|
      out << chunk
      break :left
    end)
    assert_equal("thrown", catch(:out) { stream.decompress("") { |c| throw(:out, (out << c) && "thrown") } })
    assert_raises(KeyError) { stream.decompress("") { |chunk| (out << chunk) && raise(KeyError) } }
    assert_nil(stream.finish { |chunk| out << chunk })
    assert_bytes content, out
  end

  def test_a_block_left_early_breaks_a_compressor_until_reset
    stream = Zstd::Compressor.new
    assert_raises(KeyError) { stream.compress(noise(MIB)) { raise KeyError } }
    2.times { assert_error(Zstd::StreamError) { stream.finish } }
    stream.reset
    out = +"".b
    assert_nil(stream.compress(noise(MIB)) { |chunk| out << chunk })
    assert_nil(stream.finish { |chunk| out << chunk })
    assert_bytes noise(MIB), Zstd.decompress(out)
  end

  def test_a_stream_in_use_says_so_at_once
    packed = Zstd.compress("abc")
    { Zstd::Compressor.new => :finish, Zstd::Decompressor.new => :reset }.each do |stream, name|
      job = ->(&block) { stream.is_a?(Zstd::Compressor) ? stream.finish(&block) : stream.decompress(packed, &block) }
      seen = []
      job.call do
        seen << assert_error(Zstd::BusyError) { stream.public_send(name) }
        seen << assert_error(Zstd::BusyError) { stream.close }
        Thread.new { seen << assert_error(Zstd::BusyError) { stream.reset } }.join
      end
      assert_equal 3, seen.size, stream.class.name
    end
  end

  def test_buffers_are_checked_before_any_work
    stream = Zstd::Decompressor.new
    packed = Zstd.compress("abc")
    assert_raises(FrozenError) { stream.decompress(packed, buffer: "frozen") }
    assert_raises(ArgumentError) { stream.decompress(packed, buffer: packed) }
    assert_raises(TypeError) { stream.decompress(packed, buffer: 1) }
    assert_raises(ArgumentError) { stream.decompress(packed, buffer: +"") { nil } }
    shared = ("é" * 100).dup
    copy = shared.dup
    assert_same shared, stream.decompress(packed, buffer: shared)
    assert_equal ["abc", Encoding::BINARY, 200], [shared, shared.encoding, copy.bytesize]
    packer = Zstd::Compressor.new
    out = packer.finish(buffer: shared)
    assert_same shared, out
    assert_equal "", Zstd.decompress(out)
  end

  def test_closed_streams_keep_their_totals
    packer = Zstd::Compressor.new
    packer << "abc"
    2.times { assert_nil packer.close }
    assert_predicate packer, :closed?
    assert_equal 3, packer.total_in
    %i[finish flush reset finished?].each { |name| assert_error(Zstd::StreamError) { packer.public_send(name) } }
    stream = Zstd::Decompressor.new
    stream.close
    %i[finish reset finished? unused needs_input?].each do |name|
      assert_error(Zstd::StreamError, name) { stream.public_send(name) }
    end
  end

  class Named < Zstd::Compressor
    attr_reader :name

    def initialize(name)
      @name = name
      super(level: 1)
    end
  end

  def test_copies_are_refused_and_subclasses_work
    [Zstd::Compressor, Zstd::Decompressor].each do |type|
      stream = type.new
      [-> { stream.dup }, -> { stream.clone }, -> { type.allocate }, -> { Marshal.dump(stream) },
       -> { Class.instance_method(:allocate).bind_call(type).close.then { type.allocate } }].each do |copy|
        assert_raises(TypeError, type.name, &copy)
      end
      assert_error(Zstd::StreamError) { stream.send(:initialize) }
    end
    named = Named.new("n")
    assert_equal %w[n abc], [named.name, Zstd.decompress(named.compress("abc") << named.finish)]
  end

  def test_one_release_per_call
    Zstd.convoy_guard = false
    packed = Zstd.compress(Corpus.zeros(GIB / 4))
    stream = Zstd::Decompressor.new
    counts = counted { assert_equal GIB / 4, stream.decompress(packed).bytesize }
    assert_operator counts[:releases], :<=, 3
    packer = Zstd::Compressor.new
    assert_equal 1, counted { packer.compress(noise(4 * MIB)) }[:releases]
    assert_equal 1, counted { packer.finish }[:releases]
  end

  def test_unknown_size_grows_by_doubling
    Zstd.convoy_guard = false
    packer = Zstd::Compressor.new
    packed = packer.compress(Corpus.zeros(256 * MIB)) << packer.finish
    stream = Zstd::Decompressor.new
    counts = counted { assert_equal 256 * MIB, stream.decompress(packed).bytesize }
    assert_operator counts[:releases], :<=, 2 + 8
  end

  def test_empty_pieces_are_no_fault
    stream = Zstd::Decompressor.new
    packed = Zstd.compress("abc")
    out = +""
    packed.each_char do |byte|
      40.times { assert_equal "", stream.decompress("") }
      out << stream.decompress(byte)
    end
    assert_equal "abc", out
  end

  # Without that knowledge all 150 would be there at the end.
  def test_abandoned_streams_are_freed_because_the_collector_knows_their_size
    need_proc
    assert_child(<<~'RUBY')
      content = Corpus.noise(200_000)
      one = Zstd::Compressor.new(level: 19)
      one.compress(content)
      single = Probe.memory_kb
      150.times { Zstd::Compressor.new(level: 19).compress(content) }
      peak = Probe.memory_kb("VmHWM")
      abort "#{single} -> #{peak} KiB" if peak > 10 * single
      require "objspace"
      abort "memsize" unless ObjectSpace.memsize_of(one) > 32 << 20
    RUBY
  end

  # Each call is one step from its end when the Timeout comes.
  def test_timeout_and_kill_stop_a_call_and_break_the_stream
    assert_child(<<~'RUBY')
      require "timeout"
      hard = Corpus.hard(24 << 20)
      20.times do
        packer = Zstd::Compressor.new(level: 19)
        begin
          Timeout.timeout(0.02) { packer.compress(hard) }
          abort "not stopped"
        rescue Timeout::Error
          error = Probe.error { packer.finish }
          abort error.inspect unless error.instance_of?(Zstd::StreamError)
        end
      end
      packer = Zstd::Compressor.new(level: 19)
      thread = Thread.new { packer.compress(hard) }
      Probe.wait_until("the stream is busy") { Probe.error { packer.total_in }.is_a?(Zstd::BusyError) }
      thread.kill.join
      abort "not broken" unless Probe.error { packer.flush }.instance_of?(Zstd::StreamError)
    RUBY
  end

  def test_a_forked_child_uses_what_its_parent_had
    need_fork
    assert_child(<<~'RUBY')
      packer = Zstd::Compressor.new
      head = packer.compress(Corpus.text(300_000))
      unpacker = Zstd::Decompressor.new
      unpacker.decompress(head)
      busy = Zstd::Compressor.new(level: 19)
      thread = Thread.new { busy.compress(Corpus.hard(48 << 20)) }
      Probe.wait_until("the stream is busy") { Probe.error { busy.total_in }.is_a?(Zstd::BusyError) }
      pid = fork do
        tail = packer.finish
        whole = Zstd.decompress(head + tail) == Corpus.text(300_000)
        unpacker.decompress(tail)
        unpacker.finish
        torn = Probe.error { busy.flush }.instance_of?(Zstd::StreamError)
        busy.close
        exit!(whole && torn && busy.closed? ? 0 : 1)
      end
      abort "child failed" unless Process.wait2(pid).last.success?
      thread.kill.join
    RUBY
  end

  def test_the_command_line_tool_reads_streams
    packer = Zstd::Compressor.new(level: 7, checksum: true)
    frame = +"".b
    pieces(text(MIB), [100_000]) { |piece| frame << packer.compress(piece) << packer.flush }
    result, status = zstd_cli("-q", "-d", "-c", input: frame << packer.finish)
    assert_predicate status, :success?
    assert_bytes text(MIB), result
  end
end
