# frozen_string_literal: true

require "test_helper"

class ErrorsTest < ZstdTest
  PARENTS = {
    Zstd::Error => RuntimeError, Zstd::FormatError => Zstd::Error, Zstd::UnsupportedError => Zstd::FormatError,
    Zstd::TruncatedError => Zstd::Error, Zstd::TrailingDataError => Zstd::Error, Zstd::CorruptedError => Zstd::Error,
    Zstd::ChecksumError => Zstd::Error, Zstd::WindowLimitError => Zstd::Error, Zstd::OutputLimitError => Zstd::Error,
    Zstd::DictionaryError => Zstd::Error, Zstd::PledgedSizeError => Zstd::Error, Zstd::StreamError => Zstd::Error,
    Zstd::BusyError => Zstd::StreamError
  }.freeze

  class NotAString
    def to_str = 42
  end

  class Raising
    def to_str = raise(KeyError, "from to_str")
  end

  def test_the_tree_is_as_documented
    PARENTS.each { |error, parent| assert_equal parent, error.superclass, error.name }
    declared = Zstd.constants.map { |name| Zstd.const_get(name) }.grep(Class).select { |klass| klass <= Zstd::Error }
    assert_empty declared - PARENTS.keys
  end

  # Code written for zstd-ruby rescues RuntimeError.
  def test_rescue_runtime_error_catches_every_fault
    Zstd.decompress("not zstd at all")
    flunk "no error"
  rescue RuntimeError => e
    assert_kind_of Zstd::FormatError, e
  end

  def test_each_kind_of_fault_has_its_own_code
    good = Zstd.compress("some text " * 20, checksum: true)
    window = frame(raw("tiny"), window_log: 31)
    inputs = {
      Zstd::FormatError => ["plain text"], Zstd::UnsupportedError => [frame(raw("a"), content_size: 1, bits: 8)],
      Zstd::TruncatedError => [good[0..-2]], Zstd::TrailingDataError => ["#{good}xxxxxxx".b],
      Zstd::CorruptedError => [frame(FrameBuilder::Block.new(3, 1, "a"), content_size: 1)],
      Zstd::ChecksumError => [good[0..-2] + [good.getbyte(-1) ^ 1].pack("C")], Zstd::WindowLimitError => [window],
      Zstd::OutputLimitError => [good, { max_output_size: 5 }],
      Zstd::DictionaryError => [data("bugs", "B31-dict-needed-none-given.zst")]
    }
    codes = inputs.map do |error, (bytes, options)|
      assert_error(error, error.name) { Zstd.decompress(bytes, **(options || {})) }.code
    end
    assert_equal %i[format unsupported truncated trailing_data corrupted checksum window_limit output_limit dictionary],
                 codes
  end

  def test_messages_name_the_thing_and_its_cure
    packed = Zstd.compress("x" * 1000)
    limit = assert_error(Zstd::OutputLimitError) { Zstd.decompress(packed, max_output_size: 77) }
    assert_match(/77/, limit.message)
    window = assert_error(Zstd::WindowLimitError) { Zstd.decompress(frame(raw("a"), window_log: 30)) }
    assert_match(/27/, window.message)
    dictionary = assert_error(Zstd::DictionaryError) { Zstd.decompress(data("bugs", "B31-dict-needed-none-given.zst")) }
    assert_match(/\b1111\b/, dictionary.message)
  end

  def test_what_is_not_a_string_is_a_type_error
    [nil, 42, :symbol, [], {}, Object.new, 1.5, true, NotAString.new].each do |object|
      %i[compress decompress deflate inflate].each do |name|
        assert_raises(TypeError, "#{name}(#{object.inspect})") { Zstd.public_send(name, object) }
      end
    end
  end

  def test_an_exception_from_to_str_comes_through
    error = assert_raises(KeyError) { Zstd.compress(Raising.new) }
    assert_equal "from to_str", error.message
  end

  def test_an_unknown_keyword_is_named
    %i[compress decompress deflate inflate].each do |name|
      error = assert_raises(ArgumentError) { Zstd.public_send(name, "", colour: 1) }
      assert_match(/unknown keyword.*colour/, error.message)
    end
    # Each side's own keywords are unknown to the other.
    assert_match(/level/, assert_raises(ArgumentError) { Zstd.decompress("", level: 3) }.message)
    assert_match(/window_log_max/, assert_raises(ArgumentError) { Zstd.compress("", window_log_max: 3) }.message)
  end

  def test_nil_is_as_good_as_no_keyword
    packed = Zstd.compress("a" * 50, level: nil, checksum: nil)
    assert_bytes Zstd.compress("a" * 50), packed
    assert_bytes "a" * 50, Zstd.decompress(packed, max_output_size: nil, window_log_max: nil)
  end

  def test_a_hash_is_neither_the_string_nor_its_keywords
    assert_raises(TypeError) { Zstd.compress({}) }
    assert_raises(TypeError) { Zstd.decompress({ max_output_size: 1 }) }
    assert_raises(ArgumentError) { Zstd.compress("a", { level: 3 }) }
    assert_raises(ArgumentError) { Zstd.compress(level: 3) }
    assert_bytes Zstd.compress("a", level: 5), Zstd.compress("a", **{ level: 5 })
    assert_bytes Zstd.compress("a"), Zstd.compress("a", **{})
    assert_raises(ArgumentError) { Zstd.compress("a", "level" => 5) }
  end

  def test_a_wrong_number_of_arguments_is_an_argument_error
    %i[compress decompress deflate inflate].each do |name|
      assert_raises(ArgumentError, name) { Zstd.public_send(name) }
      assert_raises(ArgumentError, name) { Zstd.public_send(name, "a", "b") }
    end
  end

  # libzstd clamps these in silence.
  def test_a_level_out_of_range_is_refused_with_the_range
    [23, 100, 2**31, 2**40, 2**70, Zstd.levels.min - 1, -(2**31), -(2**70)].each do |level|
      error = assert_raises(ArgumentError, "level #{level}") { Zstd.compress("a", level:) }
      assert_match(/22/, error.message)
      assert_match(/#{Zstd.levels.min}/, error.message)
    end
    assert_bytes "a", Zstd.decompress(Zstd.compress("a", level: Zstd.levels.min))
    assert_bytes "a", Zstd.decompress(Zstd.compress("a", level: 22))
  end

  def test_a_level_that_is_no_integer_is_a_type_error
    ["3", :fast, [], 3.5, Object.new, true].each do |level|
      assert_raises(TypeError, level.inspect) { Zstd.compress("a", level:) }
    end
  end

  def test_limits_that_make_no_sense_are_refused
    packed = Zstd.compress("a")
    assert_raises(ArgumentError) { Zstd.decompress(packed, max_output_size: -1) }
    ["1", :a, [], Object.new, 1.5, true].each do |value|
      assert_raises(TypeError, value.inspect) { Zstd.decompress(packed, max_output_size: value) }
      assert_raises(TypeError, value.inspect) { Zstd.max_output_size = value }
      assert_raises(TypeError, value.inspect) { Zstd.decompress(packed, window_log_max: value) }
    end
    assert_raises(ArgumentError) { Zstd.max_output_size = -1 }
    assert_nil Zstd.max_output_size
    [9, 32, 0, -1, 1000, 2**40].each do |value|
      error = assert_raises(ArgumentError, value.to_s) { Zstd.decompress(packed, window_log_max: value) }
      assert_match(/10.*31/, error.message)
    end
  end

  # A frame's fault is found whatever the level of nesting: the call leaves nothing behind that spoils the next.
  def test_the_next_call_after_an_error_is_as_good_as_any
    good = Zstd.compress("some text " * 200, checksum: true)
    bad = good.dup.tap { |bytes| bytes.setbyte(-1, bytes.getbyte(-1) ^ 0xFF) }
    50.times do
      assert_error(Zstd::ChecksumError) { Zstd.decompress(bad) }
      assert_error(Zstd::TruncatedError) { Zstd.decompress(good[0, 20]) }
      assert_bytes "some text " * 200, Zstd.decompress(good)
    end
  end

  def test_errors_have_a_backtrace_that_starts_at_the_caller
    error = assert_raises(Zstd::Error) { Zstd.decompress("nope nope") }
    assert_includes error.backtrace.join("\n"), "errors_test.rb:#{__LINE__ - 1}"
  end
end
