# frozen_string_literal: true

require "test_helper"

# test/data/bugs: frames that some implementation got wrong, with what is right in manifest.json.
# test/data/golden: upstream's own regression inputs (zstd, tests/golden-*).
class GoldenTest < ZstdTest
  KINDS = {
    "truncated" => Zstd::TruncatedError, "corrupt" => Zstd::CorruptedError, "bad_magic" => Zstd::FormatError,
    "window_too_large" => Zstd::WindowLimitError, "dict_wrong" => Zstd::DictionaryError,
    "unsupported" => Zstd::UnsupportedError, "checksum" => Zstd::ChecksumError
  }.freeze

  # Where the manifest leaves the choice to the implementation, or knows fewer kinds of error than we do.
  POLICY = { "B20" => Zstd::TrailingDataError, "B21a" => Zstd::TrailingDataError,
             "B44" => Zstd::UnsupportedError }.freeze

  ROWS = JSON.parse(File.read(File.join(DATA, "bugs", "manifest.json"))).freeze

  ROWS.reject { |row| row["dict"] }.each do |row|
    define_method("test_#{row["id"]}_#{row["file"][/-(.*)\.zst/, 1].tr("-", "_")}") { check(row) }
  end

  def test_the_manifest_is_all_there
    assert_equal 60, ROWS.size
    ROWS.each do |row|
      assert_equal row["in_sha256"], Digest::SHA256.hexdigest(data("bugs", row["file"])), row["file"]
    end
  end

  def check(row)
    need_memory(3) if row["out_bytes"].to_i > GIB
    input = data("bugs", row["file"])
    options = (row["options"] || {}).transform_keys(&:to_sym)
    wrong = POLICY[row["id"]] || (KINDS.fetch(row["error"]) if row["expect"] == "error")
    return assert_error(wrong, row["note"]) { Zstd.decompress(input, **options) } if wrong

    result = Zstd.decompress(input, **options)
    assert_equal row["out_bytes"], result.bytesize, row["note"]
    # A digest of 2 GiB of zeros takes half a minute; that they are zeros can be had for less.
    return assert_equal row["out_bytes"], result.count("\0") if row["out_bytes"] > GIB

    assert_equal row["sha256"], Digest::SHA256.hexdigest(result), row["note"]
  ensure
    result&.clear
  end

  def test_golden_compression_inputs_come_back_at_every_kind_of_level
    each_golden("golden-compression") do |name, bytes|
      [-5, 1, 3, 6, 9, 13, 16, 19, 22].each do |level|
        assert_round_trip bytes, "#{name}, level #{level}", level:, checksum: true
      end
    end
  end

  def test_golden_compression_results_are_valid_for_the_command_line_tool
    each_golden("golden-compression") do |name, bytes|
      [1, 3, 19].each do |level|
        result, status = zstd_cli("-q", "-d", "-c", input: Zstd.compress(bytes, level:))
        assert_predicate status, :success?, name
        assert_bytes bytes, result, "#{name}, level #{level}"
      end
    end
  end

  def test_golden_decompression_inputs_decode
    sizes = { "block-128k.zst" => 131_068, "empty-block.zst" => 0, "rle-first-block.zst" => MIB,
              "zeroSeq_2B.zst" => 13 }
    each_golden("golden-decompression") do |name, bytes|
      assert_equal sizes.fetch(name), Zstd.decompress(bytes).bytesize, name
    end
  end

  def test_golden_decompression_agrees_with_the_command_line_tool
    each_golden("golden-decompression") do |name, bytes|
      expected, status = zstd_cli("-q", "-d", "-c", input: bytes)
      # Tools before 1.5.6 refuse this one, by a fault of theirs; its content is known.
      expected = "Hello World!\n" if name == "zeroSeq_2B.zst" && !status.success?
      assert_bytes expected, Zstd.decompress(bytes), name
    end
  end

  def test_golden_decompression_errors_are_corrupt
    each_golden("golden-decompression-errors") do |name, bytes|
      assert_error(Zstd::CorruptedError, name) { Zstd.decompress(bytes) }
    end
  end

  def each_golden(folder)
    files = Dir[File.join(DATA, "golden", folder, "*")]
    refute_empty files, folder
    files.sort.each { |path| yield File.basename(path), File.binread(path) }
  end
end
