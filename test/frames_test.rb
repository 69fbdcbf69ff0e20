# frozen_string_literal: true

require "test_helper"

# Frames that other writers make: many of them, skippable ones, odd but legal headers.
class FramesTest < ZstdTest
  def test_the_data_of_all_frames_comes_back_in_order
    pieces = ["first", "", text(200_000), "x", noise(5000), "last"]
    packed = pieces.each_with_index.map do |piece, i|
      one = Zstd.compress(piece, checksum: i.odd?)
      i % 3 == 2 ? FrameBuilder.without_content_size(one) : one
    end
    assert_bytes pieces.join, Zstd.decompress(packed.join)
  end

  def test_ten_thousand_frames_in_one_string
    packed = (0...10_000).map { |i| Zstd.compress(i.to_s) }.join
    assert_bytes (0...10_000).to_a.join, Zstd.decompress(packed)
  end

  def test_a_hundred_thousand_empty_frames_are_an_empty_string
    assert_equal "", Zstd.decompress(Zstd.compress("") * 100_000)
    assert_equal "", Zstd.decompress(FrameBuilder.skippable("") * 100_000)
  end

  def test_skippable_frames_of_all_16_magics_are_skipped_anywhere
    16.times do |nibble|
      skip_me = FrameBuilder.skippable("note #{nibble}" * nibble, nibble:)
      one = Zstd.compress("one")
      two = Zstd.compress("two")
      assert_equal "", Zstd.decompress(skip_me)
      { "before" => skip_me + one + two, "between" => one + skip_me + two, "after" => one + two + skip_me,
        "everywhere" => skip_me + one + skip_me + skip_me + two + skip_me }.each do |where, packed|
        assert_equal "onetwo", Zstd.decompress(packed), "nibble #{nibble}, #{where}"
      end
    end
  end

  def test_a_large_skippable_frame_is_skipped
    assert_equal "data", Zstd.decompress(FrameBuilder.skippable(noise(3 * MIB)) + Zstd.compress("data"))
  end

  def test_a_skippable_frame_may_hold_a_whole_frame
    assert_equal "outer", Zstd.decompress(FrameBuilder.skippable(Zstd.compress("inner")) + Zstd.compress("outer"))
  end

  def test_every_width_of_the_content_size_field
    [0, 1, 255, 256, 257, 65_791, 65_792, 100_000].each do |size|
      [true, false].each do |single|
        # A run of nothing takes a byte, which is more than a window of nothing: libzstd's stream refuses that.
        next if size.zero? && single

        packed = frame(*FrameBuilder.zero_blocks(size), content_size: size, window_log: (17 unless single))
        assert_equal size, Zstd.decompress(packed).bytesize, "#{size}, single segment: #{single}"
      end
    end
    eight = FrameBuilder::MAGIC + [0xE0, 5].pack("CQ<") + FrameBuilder.body([raw("eight")])
    assert_equal "eight", Zstd.decompress(eight)
  end

  def test_every_width_of_the_dictionary_id_field
    [1, 2, 4].each do |bytes|
      none = frame(raw("no dictionary"), dict_id: 0, dict_id_bytes: bytes, content_size: 13)
      assert_equal "no dictionary", Zstd.decompress(none), "#{bytes} bytes of zero"
      error = assert_error(Zstd::DictionaryError) do
        Zstd.decompress(frame(raw("a"), dict_id: 201, dict_id_bytes: bytes, content_size: 1))
      end
      assert_match(/\b201\b/, error.message)
    end
    largest = frame(raw("a"), dict_id: (2**32) - 1, content_size: 1)
    error = assert_error(Zstd::DictionaryError) { Zstd.decompress(largest) }
    assert_match(/4294967295/, error.message)
  end

  def test_raw_rle_and_compressed_blocks_mix
    inner = Zstd.compress(text(4000), level: 1)
    body = inner.byteslice(inner.bytesize - compressed_size(inner)..)
    packed = frame(FrameBuilder.compressed(body), raw("raw"), rle("r", 1000), raw(""), rle("z", 1), window_log: 17)
    assert_bytes "#{text(4000)}raw#{"r" * 1000}z", Zstd.decompress(packed)
  end

  # A single compressed block: its size stands in the 3 bytes after the 7-byte header.
  def compressed_size(packed)
    header = packed.byteslice(7, 3).ljust(4, "\0").unpack1("V")
    assert_equal [1, 2], [header & 1, (header >> 1) & 3], "one compressed block expected"
    header >> 3
  end

  def test_checksums_of_hand_made_frames_are_checked
    [0, 1, 3, 31, 32, 33, 5000].each do |size|
      bytes = noise(size)
      packed = frame(raw(bytes), content_size: size, checksum: true)
      assert_bytes bytes, Zstd.decompress(packed)
      packed.setbyte(-4, packed.getbyte(-4) ^ 0x80)
      assert_error(Zstd::ChecksumError, "#{size} bytes") { Zstd.decompress(packed) }
    end
    assert_error(Zstd::ChecksumError) { Zstd.decompress(FrameBuilder.zeros(3 * MIB, checksum: 1)) }
    assert_equal 3 * MIB, Zstd.decompress(FrameBuilder.zeros(3 * MIB, checksum: true)).bytesize
  end

  def test_the_unused_bit_is_ignored_and_the_reserved_bit_refused
    assert_equal "a", Zstd.decompress(frame(raw("a"), content_size: 1, bits: 0x10))
    assert_error(Zstd::UnsupportedError) { Zstd.decompress(frame(raw("a"), content_size: 1, bits: 0x08)) }
  end

  def test_thousands_of_empty_blocks_are_legal
    packed = frame(*([raw("")] * 5000), raw("end"), window_log: 10)
    assert_equal "end", Zstd.decompress(packed)
    assert_equal "", Zstd.decompress(frame(*([rle("x", 0)] * 5000), window_log: 10))
  end

  def test_large_frames_of_every_block_type_come_back
    size = 9 * MIB
    noise_blocks = Array.new(72) { |i| noise(BLOCK - i) }
    assert_bytes noise_blocks.join, Zstd.decompress(frame(*noise_blocks.map { |b| raw(b) }, window_log: 20))
    assert_bytes Corpus.zeros(size), Zstd.decompress(FrameBuilder.zeros(size))
    assert_bytes Corpus.zeros(size), Zstd.decompress(FrameBuilder.zeros(size, declared: false))
    [-3, 1, 2, 3].each do |level|
      packed = Zstd.compress(text(size), level:)
      assert_bytes text(size), Zstd.decompress(packed)
      assert_bytes text(size), Zstd.decompress(FrameBuilder.without_content_size(packed))
    end
  end

  # Growing the output must keep what was written, whatever the sizes around the steps.
  def test_unknown_sizes_around_every_power_of_two_come_back
    (10..22).each do |log|
      [-1, 0, 1].each do |more|
        bytes = text((1 << log) + more)
        packed = FrameBuilder.without_content_size(Zstd.compress(bytes))
        assert_bytes bytes, Zstd.decompress(packed), "2**#{log} + #{more}"
      end
    end
  end
end
