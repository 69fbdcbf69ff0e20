# frozen_string_literal: true

require "test_helper"
require "objspace"

class OneshotTest < ZstdTest
  # Sizes where an encoding or a path changes: content size fields, blocks, the large-input path.
  SIZES = [255, 256, 257, 1023, 1024, 4095, 4096, 4097, 16_383, 65_535, 65_536, 65_791, 65_792, 131_071, 131_072,
           131_073, 262_144, 262_145, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (4 << 20) - 1, (4 << 20) + 1].freeze

  class Text < String; end

  class Stringlike
    def initialize(string) = @string = string
    def to_str = @string
  end

  def test_every_size_up_to_200_comes_back
    kinds = { text: text(200), noise: noise(200), zeros: Corpus.zeros(200) }
    kinds.each do |kind, bytes|
      201.times { |size| assert_round_trip bytes.byteslice(0, size), "#{size} bytes of #{kind}" }
    end
  end

  def test_sizes_around_every_border_come_back
    SIZES.each do |size|
      assert_round_trip text(size), "#{size} bytes of text"
      assert_round_trip noise(size), "#{size} bytes of noise"
      assert_round_trip Corpus.zeros(size), "#{size} zeros"
    end
  end

  def test_64_mib_come_back
    slow_test
    size = (64 * MIB) + 1
    assert_operator assert_round_trip(text(size)).bytesize, :<, size / 3
    assert_operator assert_round_trip(Corpus.zeros(size)).bytesize, :<, 16 << 10
    packed = assert_round_trip(noise(size))
    assert_includes size..Zstd.compress_bound(size), packed.bytesize
  end

  def test_over_4_gib_come_back
    skip "needs SLOW=1: 9 GiB of memory and half a minute" unless ENV["SLOW"]
    need_memory 10
    assert_child <<~'RUBY', timeout: 600
      size = (4 << 30) + 12_345
      input = "\0" * size
      input.setbyte(size - 1, 7)
      packed = Zstd.compress(input)
      input.clear
      out = Zstd.decompress(packed)
      abort "size #{out.bytesize}" unless out.bytesize == size
      abort "last byte" unless out.getbyte(-1) == 7
      out.chop!
      abort "contents" unless out.count("\0") == size - 1
    RUBY
  end

  def test_every_level_comes_back
    bytes = text(20_000)
    (Zstd.levels.min..Zstd.levels.min + 3).each { |level| assert_round_trip bytes, level: }
    (-150..22).each { |level| assert_round_trip bytes, level: }
  end

  def test_a_higher_level_makes_fewer_bytes
    bytes = text(200_000)
    sizes = [-50, 1, 9, 19].map { |level| Zstd.compress(bytes, level:).bytesize }
    assert_equal sizes.sort.reverse, sizes
    assert_equal sizes.uniq, sizes
  end

  def test_level_0_and_no_level_both_mean_the_default_level
    bytes = text(50_000)
    expected = Zstd.compress(bytes, level: Zstd::DEFAULT_LEVEL)
    assert_bytes expected, Zstd.compress(bytes)
    assert_bytes expected, Zstd.compress(bytes, level: 0)
  end

  def test_any_encoding_is_taken_as_bytes
    source = "Größe: 5 €, 漢字, \u{1F600}" * 20
    cases = [source, source.encode("UTF-16LE"), source.encode("UTF-32BE"), source.dup.force_encoding("US-ASCII"),
             "caf\xE9".dup.force_encoding("ISO-8859-1"), "\xFF\xFE broken".dup.force_encoding("UTF-8"),
             source.b, "日本".encode("Shift_JIS"), "a".encode("UTF-16")]
    cases.each do |string|
      encoding = string.encoding
      assert_bytes string, Zstd.decompress(Zstd.compress(string)), encoding.name
      assert_equal encoding, string.encoding
    end
  end

  def test_compressed_bytes_may_carry_any_encoding
    packed = data("bugs", "B56-binary-high-bytes.zst")
    forms = { utf8: packed.dup.force_encoding("UTF-8"), utf16: packed.dup.force_encoding("UTF-16LE"),
              frozen: packed.dup.freeze, slice: "x#{packed}y".b.byteslice(1, packed.bytesize) }
    forms.each { |form, bytes| assert_bytes Zstd.decompress(packed), Zstd.decompress(bytes), form.to_s }
  end

  def test_any_kind_of_string_is_taken
    long = text(200_000)
    kinds = {
      "embedded" => "tiny".b, "embedded, frozen" => "tiny", "heap" => long.dup, "heap, frozen" => long.dup.freeze,
      "shared in the middle" => long.dup.byteslice(1000, 150_000), "shared tail" => long.dup.byteslice(50_000..),
      "subclass" => Text.new(long), "subclass, embedded" => Text.new("tiny"), "to_str" => Stringlike.new(long.dup),
      "interned" => -"some interned words", "capacity to spare" => (+"").tap { |s| s << "abc" * 100 },
      "cut" => long.dup.tap { |s| s.slice!(100..) }, "symbol's name" => :a_symbol.name
    }
    kinds.each do |kind, input|
      expected = input.to_str.dup
      packed = Zstd.compress(input)
      assert_bytes expected, Zstd.decompress(packed), kind
      assert_bytes expected, Zstd.decompress(Stringlike.new(packed)), kind
      assert_bytes expected, Zstd.decompress(Text.new(packed)), kind
      assert_bytes expected, input.to_str, "#{kind}: the argument is as it was"
    end
  end

  def test_results_are_plain_binary_strings_not_frozen_and_independent
    [Text.new("abc" * 1000), "abc", ""].each do |input|
      [packed = Zstd.compress(input), Zstd.decompress(packed)].each do |result|
        assert_instance_of String, result
        assert_equal Encoding::BINARY, result.encoding
        refute_predicate result, :frozen?
        result << "more"
        assert_equal "more", result[-4..]
      end
      assert_bytes input, Zstd.decompress(Zstd.compress(input))
    end
  end

  # A String written behind Ruby's back may keep what Ruby once knew about its bytes.
  def test_results_hash_and_compare_like_any_string_of_the_same_bytes
    ["plain ascii" * 20, "größe" * 400, text(3 * MIB), "x"].each do |input|
      result = Zstd.decompress(Zstd.compress(input))
      assert_equal input.b.hash, result.hash
      assert_equal input.b.ascii_only?, result.ascii_only?
      assert_equal({ input.b => 1 }[result], 1)
      assert_predicate result.force_encoding("UTF-8"), :valid_encoding?
      assert_equal input.b.force_encoding("UTF-8"), result
    end
  end

  def test_results_keep_no_spare_capacity
    packed = Zstd.compress(text(5 * MIB))
    { "compressed" => Zstd.compress(text(5 * MIB)), "compressed zeros" => Zstd.compress(Corpus.zeros(5 * MIB)),
      "decompressed" => Zstd.decompress(packed),
      "size unknown" => Zstd.decompress(FrameBuilder.without_content_size(packed)) }.each do |what, string|
      assert_operator ObjectSpace.memsize_of(string), :<, (string.bytesize * 1.02) + 4096, what
    end
  end

  def test_the_same_input_gives_the_same_bytes
    bytes = text(300_000)
    assert_equal 1, Array.new(5) { Zstd.compress(bytes, level: 5) }.uniq.size
  end

  def test_deflate_and_inflate_are_the_duck_type_of_a_rails_compressor
    packed = Zstd.deflate("some value" * 10)
    assert_bytes Zstd.compress("some value" * 10), packed
    assert_bytes "some value" * 10, Zstd.inflate(packed)
    assert_bytes Zstd.compress("x" * 99, level: 9, checksum: true), Zstd.deflate("x" * 99, level: 9, checksum: true)
    assert_error(Zstd::OutputLimitError) { Zstd.inflate(packed, max_output_size: 3) }
  end

  def test_checksum_is_the_low_half_of_xxh64_and_absent_by_default
    [0, 1, 31, 32, 100, 5000].each do |size|
      bytes = text(size)
      packed = assert_round_trip(bytes, checksum: true)
      assert_equal FrameBuilder.xxh64(bytes) & 0xFFFFFFFF, packed[-4..].unpack1("V"), "#{size} bytes"
      assert_equal packed.bytesize - 4, Zstd.compress(bytes).bytesize
    end
  end

  def test_an_empty_string_makes_one_empty_frame
    assert_equal 9, Zstd.compress("").bytesize
    assert_equal "", Zstd.decompress(Zstd.compress(""))
  end

  def test_frames_state_their_content_size
    assert_bytes frame(raw("hello"), content_size: 5), Zstd.compress("hello")
  end

  def test_compress_bound_is_libzstd_s_and_is_never_exceeded
    [0, 1, 100, 1000, 131_071, 131_072, 131_073, 1 << 20, 1 << 32].each do |size|
      margin = size < 131_072 ? (131_072 - size) >> 11 : 0
      assert_equal size + (size >> 8) + margin, Zstd.compress_bound(size)
    end
    [0, 1, 100, 1000, 131_073].each do |size|
      assert_operator Zstd.compress(noise(size), level: -100).bytesize, :<=, Zstd.compress_bound(size)
    end
    assert_raises(ArgumentError, RangeError) { Zstd.compress_bound(-1) }
    assert_raises(ArgumentError, RangeError) { Zstd.compress_bound(1 << 70) }
    assert_raises(TypeError) { Zstd.compress_bound("1") }
  end

  def test_constants_and_versions_agree
    assert_equal 3, Zstd::DEFAULT_LEVEL
    assert_equal 22, Zstd.levels.max
    assert_operator Zstd.levels.min, :<=, -131_072
    assert_includes Zstd.levels, 0
    assert_match(/\A\d+\.\d+\.\d+\z/, Zstd::LIBZSTD_VERSION)
    major, minor, patch = Zstd::LIBZSTD_VERSION.split(".").map(&:to_i)
    assert_equal (major * 10_000) + (minor * 100) + patch, Zstd.zstd_version
    assert_operator Zstd.zstd_version, :>=, 10_507
    assert_match(/\A\d+\.\d+\.\d+/, Zstd::VERSION)
    assert_equal [Zstd::VERSION, Zstd::LIBZSTD_VERSION].map(&:frozen?), [true, true]
  end

  def test_huge_pages_are_opt_in_and_change_no_byte
    assert_equal false, Zstd.huge_pages
    assert_child <<~RUBY
      input = Corpus.text(48 << 20)
      packed = Zstd.compress(input)
      Zstd.huge_pages = true
      abort "not a boolean" unless [true, false].include?(Zstd.huge_pages)
      abort "differs" unless Zstd.decompress(packed) == input && Zstd.compress(input) == packed
      Zstd.huge_pages = false
      abort "still on" if Zstd.huge_pages
      abort "differs" unless Zstd.decompress(packed) == input
    RUBY
  end
end
