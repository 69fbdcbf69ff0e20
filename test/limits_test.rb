# frozen_string_literal: true

require "test_helper"

class LimitsTest < ZstdTest
  # name => [frame, content size]: the same limits hold whether or not the frame states its size.
  def frames
    packed = Zstd.compress(text(300_000))
    { "declared" => [packed, 300_000], "undeclared" => [FrameBuilder.without_content_size(packed), 300_000],
      "raw blocks" => [frame(*Array.new(3) { raw(noise(BLOCK)) }), 3 * BLOCK],
      "rle blocks" => [FrameBuilder.zeros(300_001, declared: false), 300_001],
      "rle, declared" => [FrameBuilder.zeros(300_001), 300_001],
      "two frames" => [packed + FrameBuilder.without_content_size(packed), 600_000],
      "small, undeclared" => [FrameBuilder.without_content_size(Zstd.compress("a" * 50)), 50] }
  end

  def test_output_of_exactly_the_limit_is_allowed
    frames.each do |kind, (packed, size)|
      [size, size + 1, size * 2, 2**40, (2**64) - 1].each do |limit|
        assert_equal size, Zstd.decompress(packed, max_output_size: limit).bytesize, "#{kind}, limit #{limit}"
      end
    end
  end

  def test_output_over_the_limit_is_refused
    frames.each do |kind, (packed, size)|
      [0, 1, size / 2, size - BLOCK, size - 2, size - 1].grep(0..).each do |limit|
        assert_error(Zstd::OutputLimitError, "#{kind}, limit #{limit}") do
          Zstd.decompress(packed, max_output_size: limit)
        end
      end
    end
  end

  def test_a_limit_of_zero_allows_frames_without_content
    ["", Zstd.compress(""), FrameBuilder.skippable("abc")].each do |piece|
      packed = FrameBuilder.skippable("x") + piece
      assert_equal "", Zstd.decompress(packed, max_output_size: 0)
    end
    assert_error(Zstd::OutputLimitError) { Zstd.decompress(Zstd.compress("a"), max_output_size: 0) }
  end

  def test_a_limit_counts_all_frames_together
    packed = Zstd.compress("a" * 1000) * 10
    assert_equal 10_000, Zstd.decompress(packed, max_output_size: 10_000).bytesize
    assert_error(Zstd::OutputLimitError) { Zstd.decompress(packed, max_output_size: 9999) }
  end

  # A bomb may be longer than the limit: what matters is that it is not decoded. The peak shows it.
  def test_a_bomb_costs_no_memory_beyond_its_limit
    need_proc
    assert_child <<~'RUBY'
      Zstd.decompress(Zstd.compress("a" * 100_000))
      dense = FrameBuilder.without_content_size(Zstd.compress("\0" * (256 << 20)))
      GC.start
      bombs = { "declared" => FrameBuilder.zeros(1 << 30), "rle" => FrameBuilder.zeros(1 << 30, declared: false),
                "compressed" => dense, "frames" => Zstd.compress("\0" * (1 << 20)) * 1024,
                "lies" => FrameBuilder.frame(FrameBuilder.raw("x"), content_size: 1 << 40, window_log: 20) }
      base = Probe.reset_peak
      bombs.each do |name, bomb|
        Zstd.decompress(bomb, max_output_size: 1 << 20)
        abort "#{name}: no error"
      rescue Zstd::OutputLimitError, Zstd::CorruptedError
        grown = Probe.memory_kb("VmHWM") - base
        abort "#{name}: the peak grew by #{grown} KiB" if grown > 12 << 10
      end
    RUBY
  end

  def test_the_process_wide_default_holds_where_no_limit_is_given
    packed = Zstd.compress("a" * 1000)
    Zstd.max_output_size = 999
    assert_equal 999, Zstd.max_output_size
    assert_error(Zstd::OutputLimitError) { Zstd.decompress(packed) }
    assert_error(Zstd::OutputLimitError) { Zstd.inflate(packed) }
    Zstd.max_output_size = 1000
    assert_equal 1000, Zstd.decompress(packed).bytesize
    Zstd.max_output_size = nil
    assert_equal 1000, Zstd.decompress(packed).bytesize
  end

  def test_an_explicit_limit_wins_over_the_default
    packed = Zstd.compress("a" * 1000)
    Zstd.max_output_size = 10
    assert_equal 1000, Zstd.decompress(packed, max_output_size: 1000).bytesize
    assert_equal 1000, Zstd.decompress(packed, max_output_size: Float::INFINITY).bytesize
    assert_error(Zstd::OutputLimitError, "nil is as good as nothing") { Zstd.decompress(packed, max_output_size: nil) }
    Zstd.max_output_size = 1000
    assert_error(Zstd::OutputLimitError) { Zstd.decompress(packed, max_output_size: 10) }
  end

  def test_every_window_log_is_allowed_up_to_its_limit
    (10..31).each do |log|
      packed = frame(raw("tiny"), window_log: log)
      (10..31).each do |limit|
        if log <= limit
          assert_equal "tiny", Zstd.decompress(packed, window_log_max: limit), "window #{log}, limit #{limit}"
        else
          assert_error(Zstd::WindowLimitError) { Zstd.decompress(packed, window_log_max: limit) }
        end
      end
    end
  end

  def test_window_of_128_mib_is_the_default_limit
    assert_equal "tiny", Zstd.decompress(frame(raw("tiny"), window_log: 27))
    assert_error(Zstd::WindowLimitError) { Zstd.decompress(frame(raw("tiny"), window_log: 28)) }
  end

  # The mantissa adds eighths: 2**27 is allowed, one eighth more is not.
  def test_a_window_between_two_powers_is_measured_exactly
    (1..7).each do |mantissa|
      packed = frame(raw("tiny"), window_log: 27, mantissa:)
      assert_error(Zstd::WindowLimitError, "mantissa #{mantissa}") { Zstd.decompress(packed) }
      assert_equal "tiny", Zstd.decompress(packed, window_log_max: 28)
      assert_equal "tiny", Zstd.decompress(frame(raw("tiny"), window_log: 26, mantissa:))
    end
  end

  # RFC 8878, 3.1.1.1.2: with a single segment the window is the content size.
  def test_a_single_segment_frame_has_a_window_of_its_content_size
    packed = ->(size) { frame(*FrameBuilder.zero_blocks(size), content_size: size) }
    assert_equal 1024, Zstd.decompress(packed[1024], window_log_max: 10).bytesize
    assert_error(Zstd::WindowLimitError) { Zstd.decompress(packed[1025], window_log_max: 10) }
    assert_equal 65_536, Zstd.decompress(packed[65_536], window_log_max: 16).bytesize
    assert_error(Zstd::WindowLimitError) { Zstd.decompress(packed[65_537], window_log_max: 16) }
  end

  def test_a_window_too_large_in_a_later_frame_is_refused_too
    packed = Zstd.compress("first") + frame(raw("second"), window_log: 28)
    assert_error(Zstd::WindowLimitError) { Zstd.decompress(packed) }
    assert_equal "firstsecond", Zstd.decompress(packed, window_log_max: 28)
  end

  def test_numbers_of_more_than_64_bits_keep_their_sign
    packed = Zstd.compress("content")
    assert_equal "content", Zstd.decompress(packed, max_output_size: 2**70)
    [-1, -(2**63), -(2**64), -(2**70)].each do |limit|
      assert_raises(ArgumentError, limit) { Zstd.decompress(packed, max_output_size: limit) }
      assert_raises(ArgumentError, limit) { Zstd.max_output_size = limit }
      assert_match(/#{limit}/, assert_raises(ArgumentError) { Zstd.compress("", level: limit) }.message) if limit < -1
    end
    assert_nil Zstd.max_output_size
  end

  def test_an_empty_result_keeps_no_room
    require "objspace"
    # Compressed blocks with nothing in them: each might hold 128 KiB.
    empty = "\x14\0\0\0\0".b
    packed = [0x28, 0xB5, 0x2F, 0xFD, 0, 0x58].pack("C*") + (empty * 20) + "\x15\0\0\0\0".b
    assert_empty Zstd.decompress(packed)
    assert_operator ObjectSpace.memsize_of(Zstd.decompress(packed)), :<, 1000
  end
end
