# frozen_string_literal: true

require "test_helper"

# The zstd command line tool reads what we write, and we read what it writes.
class CliTest < ZstdTest
  def inputs
    Corpus.small.merge("300 KB" => text(300_000), "2 MB of zeros" => Corpus.zeros(2_000_000),
                       "noise" => noise(200_000))
  end

  def test_what_we_compress_passes_zstd_t_and_comes_back
    inputs.each do |name, bytes|
      [-7, 1, 3, 19].product([true, false]).each do |level, checksum|
        packed = Zstd.compress(bytes, level:, checksum:)
        output, status = zstd_cli("-q", "-t", input: packed)
        assert_predicate status, :success?, "#{name}, level #{level}: #{output}"
        next unless level == 3

        result, status = zstd_cli("-q", "-d", "-c", input: packed)
        assert_predicate status, :success?, name
        assert_bytes bytes, result, name
      end
    end
  end

  def test_the_tool_sees_our_checksum
    bent = Zstd.compress(text(500), checksum: true).tap { |bytes| bytes.setbyte(-1, bytes.getbyte(-1) ^ 1) }
    _output, status = zstd_cli("-q", "-t", input: bent)
    refute_predicate status, :success?
  end

  # From a pipe the tool does not know the size, so these frames do not state it.
  def test_what_the_tool_compresses_comes_back
    inputs.each do |name, bytes|
      [%w[-1], %w[-3], %w[-19], %w[--no-check], %w[--fast=5], %w[--long=24], %w[-T2]].each do |options|
        packed, status = zstd_cli("-q", "-c", *options, input: bytes)
        assert_predicate status, :success?, packed
        assert_bytes bytes, Zstd.decompress(packed), "#{name}, #{options}"
      end
    end
  end

  def test_frames_of_the_tool_and_ours_mix_in_one_file
    theirs, = zstd_cli("-q", "-c", input: text(1000))
    assert_bytes "#{text(1000)}ours#{text(1000)}", Zstd.decompress(theirs + Zstd.compress("ours") + theirs)
    result, status = zstd_cli("-q", "-d", "-c", input: theirs + Zstd.compress("ours"))
    assert_predicate status, :success?
    assert_bytes "#{text(1000)}ours", result
  end

  def test_a_window_the_tool_was_told_to_enlarge_needs_leave
    packed, = zstd_cli("-q", "-c", "--long=28", input: text(100_000))
    assert_equal 28, window_log(packed)
    assert_error(Zstd::WindowLimitError) { Zstd.decompress(packed) }
    assert_bytes text(100_000), Zstd.decompress(packed, window_log_max: 28)
  end

  def window_log(packed)
    packed.getbyte(4).anybits?(0x20) ? 0 : 10 + (packed.getbyte(5) >> 3)
  end
end
