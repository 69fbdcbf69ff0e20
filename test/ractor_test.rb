# frozen_string_literal: true

require "test_helper"

class RactorTest < ZstdTest
  # Ruby 3.5 renamed `take` to `value`.
  PRELUDE = <<~'RUBY'
    value_of = ->(ractor) { ractor.respond_to?(:value) ? ractor.value : ractor.take }
  RUBY

  def assert_ractors(code)
    skip "no Ractors on this Ruby" unless defined?(Ractor)
    assert_child(PRELUDE + code)
  end

  def test_ractors_compress_and_decompress_in_parallel
    assert_ractors <<~'RUBY'
      text = Corpus.text(400_000).freeze
      right = Zstd.compress(text).freeze
      ractors = Array.new(4) do
        Ractor.new(text, right) do |input, packed|
          Array.new(30) { Zstd.compress(input) == packed && Zstd.decompress(packed) == input }.all?
        end
      end
      abort "wrong" unless ractors.all? { |ractor| value_of[ractor] }
    RUBY
  end

  def test_errors_and_the_rest_of_the_api_work_in_a_ractor
    assert_ractors <<~'RUBY'
      results = value_of[Ractor.new do
        errors = [-> { Zstd.decompress("bad bad") }, -> { Zstd.compress("a", nope: 1) },
                  -> { Zstd.decompress(Zstd.compress("a" * 100), max_output_size: 9) }].map { |job| Probe.error(&job).class }
        [*errors, Zstd.inflate(Zstd.deflate("x", level: 9, checksum: true)), Zstd.stats.calls.positive?,
         Zstd.levels.max, Zstd.zstd_version, Zstd.compress_bound(10) > 10, Zstd.max_output_size, Zstd::LIBZSTD_VERSION]
      end]
      expected = [Zstd::FormatError, ArgumentError, Zstd::OutputLimitError, "x", true, 22, Zstd.zstd_version, true, nil, Zstd::LIBZSTD_VERSION]
      abort results.inspect unless results == expected
    RUBY
  end

  def test_small_calls_in_ractors_beside_the_main_one
    assert_ractors <<~'RUBY'
      ractors = Array.new(2) { |i| Ractor.new(i) { |n| 500.times.all? { |j| Zstd.decompress(Zstd.compress("#{n}-#{j}" * 20)) == "#{n}-#{j}" * 20 } } }
      mine = 500.times.all? { |j| Zstd.decompress(Zstd.compress("main #{j}" * 20)) == "main #{j}" * 20 }
      abort "wrong" unless mine && ractors.all? { |ractor| value_of[ractor] }
    RUBY
  end
end
