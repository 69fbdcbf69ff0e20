# frozen_string_literal: true

require "test_helper"

# Bytes that someone cut, bent or made up. The only outcomes allowed: some String, or a Zstd::Error.
class HostileTest < ZstdTest
  # name => a whole frame, each with other blocks and header fields in it.
  def frames
    words = text(900)
    { "compressed" => Zstd.compress(words, checksum: true), "level 19" => Zstd.compress(words, level: 19),
      "unknown size" => FrameBuilder.without_content_size(Zstd.compress(words, level: 1)),
      "raw" => frame(raw("raw block"), raw("second"), content_size: 15, checksum: true),
      "rle" => frame(rle("r", 500), rle("s", BLOCK), window_log: 17, checksum: true),
      "empty" => Zstd.compress("", checksum: true), "dictionary id 0" => frame(raw("a"), dict_id: 0, content_size: 1),
      "skippable" => FrameBuilder.skippable("skip me") + Zstd.compress("after"),
      "two" => Zstd.compress("one") + Zstd.compress("two", checksum: true),
      "wide size" => frame(raw("a" * 300), content_size: 300, window_log: 10) }
  end

  def string_or_error(bytes, message, **options)
    result = Zstd.decompress(bytes, max_output_size: 64 * MIB, **options)
    assert_instance_of String, result, message
  rescue Zstd::Error => e
    assert_instance_of Symbol, e.code, message
    refute_empty e.message, message
  end

  def test_every_proper_prefix_of_a_frame_is_truncated
    whole = data("bugs", "B17a-truncate-base.zst")
    assert_equal 1064, whole.bytesize
    (1...whole.bytesize).each do |size|
      assert_error(Zstd::TruncatedError, "first #{size} bytes") { Zstd.decompress(whole.byteslice(0, size)) }
    end
    assert_equal 4096, Zstd.decompress(whole).bytesize
  end

  def test_every_proper_prefix_of_every_kind_of_frame_is_truncated
    frames.each do |kind, whole|
      borders = kind == "two" ? [Zstd.compress("one").bytesize] : []
      borders = [15] if kind == "skippable"
      (0...whole.bytesize).each do |size|
        cut = whole.byteslice(0, size)
        next assert_instance_of(String, Zstd.decompress(cut)) if borders.include?(size)

        assert_error(Zstd::TruncatedError, "#{kind}, first #{size} bytes") { Zstd.decompress(cut) }
      end
    end
  end

  # A cut between two frames cannot be told from a shorter file: there, and only there, data comes back.
  def test_a_file_of_two_frames_may_be_cut_at_the_border_only
    first = Zstd.compress(text(2000), checksum: true)
    both = first + Zstd.compress(text(500))
    (1...both.bytesize).each do |size|
      cut = both.byteslice(0, size)
      if size == first.bytesize
        assert_bytes text(2000), Zstd.decompress(cut)
      else
        assert_error(Zstd::TruncatedError, "first #{size} bytes") { Zstd.decompress(cut) }
      end
    end
  end

  def test_truncation_is_told_from_the_output_limit_only_by_the_bytes
    cut = Zstd.compress(text(3000)).byteslice(0, 100)
    [10, 3000, nil].each do |limit|
      error = assert_raises(Zstd::Error) { Zstd.decompress(cut, max_output_size: limit) }
      assert_includes [Zstd::TruncatedError, *(Zstd::OutputLimitError if limit == 10)], error.class
    end
  end

  def test_one_byte_bent_anywhere_never_crashes
    frames.each do |kind, whole|
      whole.bytesize.times do |at|
        [0x01, 0x10, 0x80, 0xFF].each do |mask|
          bent = whole.dup.tap { |bytes| bytes.setbyte(at, bytes.getbyte(at) ^ mask) }
          string_or_error bent, "#{kind}, byte #{at} ^ #{mask}"
        end
      end
    end
  end

  def test_every_value_of_every_header_byte_never_crashes
    frames.each do |kind, whole|
      [18, whole.bytesize].min.times do |at|
        256.times do |value|
          bent = whole.dup.tap { |bytes| bytes.setbyte(at, value) }
          string_or_error bent, "#{kind}, byte #{at} = #{value}", window_log_max: 31
        end
      end
    end
  end

  # With a checksum a bent byte may be refused or harmless, but never other data.
  def test_a_checksum_turns_every_bent_content_into_an_error
    words = text(900)
    whole = Zstd.compress(words, checksum: true)
    (whole.bytesize - 4).times do |at|
      bent = whole.dup.tap { |bytes| bytes.setbyte(at, bytes.getbyte(at) ^ 0x04) }
      result = begin
        Zstd.decompress(bent)
      rescue Zstd::Error
        next pass
      end
      # Bit 2 of the descriptor is the checksum flag itself; 0x50 for 0x54 makes another magic.
      assert_includes [words, ""], result, "byte #{at}" unless at == 4
    end
  end

  def test_noise_after_a_good_header_never_crashes
    headers = [FrameBuilder::MAGIC, frame(raw(""), content_size: 1000)[0, 7], frame(raw(""), window_log: 20)[0, 6],
               Zstd.compress(text(2000))[0, 40]]
    random = Random.new(99)
    3000.times do |round|
      string_or_error headers[round % 4] + random.bytes(random.rand(200)), "round #{round}"
    end
  end

  def test_bytes_dropped_doubled_and_moved_never_crash
    random = Random.new(5)
    frames.each_value do |whole|
      150.times do |round|
        from, length, to = Array.new(3) { random.rand(whole.bytesize) }
        piece = whole.byteslice(from, length % 30)
        string_or_error whole.dup.tap { |s| s[from, piece.bytesize] = "" }, "drop, round #{round}"
        string_or_error whole.dup.insert(to, piece), "insert, round #{round}"
      end
    end
  end

  def test_nothing_is_a_truncated_frame
    assert_error(Zstd::TruncatedError) { Zstd.decompress("") }
  end

  def test_bytes_after_the_last_frame_are_trailing_data
    [Zstd.compress("payload"), FrameBuilder.skippable("s"), Zstd.compress("a", checksum: true) * 2].each do |whole|
      ["\0", "\0\0\0\0", "\0" * 100, "junk", "x", "\x1F\x8B\x08\x00 gzip", "\xFF" * 3].each do |tail|
        assert_error(Zstd::TrailingDataError, tail.inspect) { Zstd.decompress(whole + tail.b) }
      end
    end
  end

  def test_the_beginning_of_a_next_frame_is_truncation_not_trailing_data
    whole = Zstd.compress("payload")
    (1..3).each do |size|
      [FrameBuilder::MAGIC, FrameBuilder.skippable("", nibble: 7)].each do |magic|
        assert_error(Zstd::TruncatedError) { Zstd.decompress(whole + magic[0, size]) }
        assert_error(Zstd::TruncatedError) { Zstd.decompress(magic[0, size]) }
      end
    end
  end

  def test_what_is_not_zstd_is_named
    looks = {
      /gzip/i => ["\x1F\x8B\x08\x00\x00\x00\x00\x00".b, data("bugs", "B23a-actually-gzip.zst")],
      /text/i => ["plain text, not compressed", "{\"json\": true}", data("bugs", "B23b-actually-text.zst")],
      /zero|NUL/i => ["\0" * 100, "\0" * 8]
    }
    looks.each do |pattern, inputs|
      inputs.each { |input| assert_match pattern, assert_error(Zstd::FormatError) { Zstd.decompress(input) }.message }
    end
    [noise(100), "hi", "x", "\xFF\xFE", data("bugs", "B30a-magicless-default.zst")].each_with_index do |input, index|
      assert_error(Zstd::FormatError, "input #{index}") { Zstd.decompress(input) }
    end
  end

  def test_legacy_frames_are_refused_as_unsupported
    (0xFD2FB522..0xFD2FB527).each do |magic|
      error = assert_error(Zstd::UnsupportedError) { Zstd.decompress([magic].pack("V") + ("\0" * 20)) }
      assert_kind_of Zstd::FormatError, error
    end
  end

  def test_a_content_size_that_lies_is_corrupt_and_allocates_nothing
    need_proc
    before = Probe.memory_kb("VmHWM")
    cases = { "too small" => frame(raw("hello"), content_size: 4), "too big" => frame(raw("hello"), content_size: 6),
              "far too big" => frame(raw("hello"), content_size: 2**62, window_log: 20),
              "a gigabyte" => frame(raw("hello"), content_size: GIB, window_log: 20),
              "one less than rle" => frame(rle("x", BLOCK), content_size: BLOCK - 1, window_log: 17),
              "one more than rle" => frame(rle("x", BLOCK), content_size: BLOCK + 1, window_log: 17),
              "zero, with content" => frame(raw("a"), content_size: 0),
              "some, without" => frame(raw(""), content_size: 1) }
    real = Zstd.compress(text(3000))
    size_at = 5
    [2999, 3001, 65_000].each do |lie|
      cases["compressed, says #{lie}"] = real.dup.tap { |s| s[size_at, 2] = [lie - 256].pack("v") }
    end
    cases.each { |kind, bytes| assert_error(Zstd::CorruptedError, kind) { Zstd.decompress(bytes) } }
    assert_operator Probe.memory_kb("VmHWM") - before, :<, 64 << 10
  end

  def test_blocks_larger_than_the_format_allows_are_corrupt
    too_large = [frame(rle("x", BLOCK + 1), window_log: 20), frame(rle("x", (1 << 21) - 1), window_log: 20),
                 frame(rle("x", 2000), window_log: 10), frame(raw("x" * 2000), window_log: 10),
                 frame(rle("x", 200), content_size: 100), frame(raw("x" * (BLOCK + 1)), window_log: 20)]
    too_large.each_with_index { |bytes, i| assert_error(Zstd::CorruptedError, i.to_s) { Zstd.decompress(bytes) } }
    assert_equal 1024, Zstd.decompress(frame(rle("x", 1024), window_log: 10)).bytesize
  end

  def test_a_fault_in_a_later_frame_is_found_behind_good_ones
    good = Zstd.compress(text(500)) * 3
    { Zstd::CorruptedError => frame(FrameBuilder::Block.new(3, 1, "a"), content_size: 1),
      Zstd::UnsupportedError => frame(raw("a"), content_size: 1, bits: 8),
      Zstd::ChecksumError => frame(raw("a"), content_size: 1, checksum: 0xDEADBEEF),
      Zstd::DictionaryError => frame(raw("a"), content_size: 1, dict_id: 77) }.each do |error, bad|
      assert_error(error) { Zstd.decompress(good + bad) }
      assert_error(error) { Zstd.decompress(good + bad + good) }
    end
  end

  def test_ten_thousand_bad_frames_leave_memory_flat
    slow_test
    need_proc
    assert_child <<~'RUBY'
      good = Zstd.compress(Corpus.text(60_000), checksum: true)
      bad = [good[0, 30_000 % good.bytesize], good[0..-2], good[0..-2] + "\0", "not zstd", good + "tail",
             FrameBuilder.frame(FrameBuilder.raw("x"), content_size: 1 << 40, window_log: 20),
             good.dup.tap { |s| s.setbyte(500, s.getbyte(500) ^ 0xFF) },
             FrameBuilder.without_content_size(good)[0..-5] + "abcd"]
      run = lambda do |count|
        count.times do |i|
          error = Probe.error { Zstd.decompress(bad[i % 8], max_output_size: i % 3 == 0 ? 50_000 : nil) }
          abort "#{i % 8}: #{error.inspect}" unless error.is_a?(Zstd::Error)
        end
      end
      run[10_000] # until the heap has the size it needs
      GC.start
      before = Probe.memory_kb
      run[10_000]
      GC.start
      grown = Probe.memory_kb - before
      abort "grew by #{grown} KiB" if grown > 16 << 10
      abort "contexts #{Zstd.stats}" if Zstd.stats.contexts > 8
    RUBY
  end
end
