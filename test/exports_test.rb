# frozen_string_literal: true

require "test_helper"

# libzstd is inside the extension. Were its symbols visible, another gem's libzstd of another version could answer
# our calls, or ours answer theirs.
class ExportsTest < ZstdTest
  ZSTD = /\b_?(ZSTD|ZDICT|HUF|FSE|HIST|XXH|COVER|FASTCOVER|ERR_getErrorString|POOL|divsufsort|rust_zstd|zstd_)/

  def extension
    $LOADED_FEATURES.grep(%r{zstd_rb/zstd_rb\.(so|bundle|dll)\z}).first || flunk("the extension is not loaded")
  end

  def nm(*options)
    output, status = Open3.capture2e("nm", *options, extension)
    assert_predicate status, :success?, output
    output
  rescue Errno::ENOENT
    skip "nm is not installed"
  end

  def test_the_extension_exports_its_init_function_and_nothing_of_zstd
    skip "the flags of nm are those of ELF" unless RUBY_PLATFORM.include?("linux")
    exported = nm("-D", "--defined-only").lines(chomp: true)
    assert exported.grep(/\bInit_zstd_rb\z/).any?, "nm sees no Init_zstd_rb: #{exported.first(5)}"
    assert_empty exported.grep(ZSTD)
  end

  # Nor may it look for a libzstd elsewhere. The weak ZSTD_trace_* are hooks that libzstd calls when somebody defines
  # them; nobody does, and without them nothing is missing.
  def test_the_extension_needs_no_libzstd_from_outside
    skip "the flags of nm are those of ELF" unless RUBY_PLATFORM.include?("linux")
    undefined = nm("-D", "--undefined-only").lines(chomp: true)
    assert undefined.grep(/\brb_/).any?, "nm sees no Ruby function"
    assert_empty undefined.grep(ZSTD).grep_v(/ w ZSTD_trace_/)
  end

  def test_libzstd_is_built_with_its_assembly
    skip "libzstd has assembly for x86-64 on Linux alone" unless RUBY_PLATFORM.match?(/x86_64.*linux/)
    local = nm("--defined-only")
    skip "the extension is stripped" unless local.match?(/\bZSTD_decompressDCtx\b/)
    assert_match(/\bHUF_decompress4X1_usingDTable_internal_fast_asm_loop\b/, local)
  end

  def test_another_libzstd_in_the_process_changes_nothing
    skip "no libzstd to load" unless RUBY_PLATFORM.include?("linux")
    assert_child <<~'RUBY', env: { "LD_BIND_NOW" => "1" }
      version = Zstd.zstd_version
      begin
        require "fiddle"
        other = Fiddle.dlopen("libzstd.so.1")
      rescue LoadError, Fiddle::DLError
        exit
      end
      other["ZSTD_versionNumber"]
      abort "version" unless Zstd.zstd_version == version
      abort "wrong" unless Zstd.decompress(Zstd.compress("fine" * 1000)) == "fine" * 1000
    RUBY
  end
end
