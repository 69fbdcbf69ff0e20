# frozen_string_literal: true

require "test_helper"

class MemoryTest < ZstdTest
  # Input and base are there before; the peak may grow by the output and a little.
  ONE_SHOT = <<~'RUBY'
    packed = File.binread(ARGV[0])
    size = Integer(ARGV[1])
    GC.start
    base = [Probe.memory_kb("VmHWM"), Probe.memory_kb].max
    out = Zstd.decompress(packed)
    grown = Probe.memory_kb("VmHWM") - base
    abort "wrong size #{out.bytesize}" unless out.bytesize == size
    abort "the peak grew by #{grown} KiB for #{size >> 10} KiB of output" if grown > (size >> 10) + (8 << 10)
    abort "the measure sees nothing" if grown < size >> 11
  RUBY

  def assert_peak(packed, size)
    need_proc
    Tempfile.create("frame") do |file|
      file.binmode
      file.write(packed)
      file.close
      assert_child ONE_SHOT, file.path, size.to_s
    end
  end

  def test_a_gigabyte_needs_its_output_and_eight_mib
    slow_test
    need_memory 3
    assert_peak FrameBuilder.zeros(GIB), GIB
  end

  def test_what_compress_makes_needs_its_output_and_eight_mib
    slow_test
    need_memory 3
    output, status = run_child(<<~'RUBY', packed = File.join(Dir.tmpdir, "zstd_rb_#{Process.pid}.zst"))
      File.binwrite(ARGV[0], Zstd.compress("\0" * (1 << 30)))
    RUBY
    assert_predicate status, :success?, output
    assert_peak File.binread(packed), GIB
  ensure
    File.delete(packed) if packed && File.exist?(packed)
  end

  def test_real_text_and_many_frames_need_their_output_and_eight_mib
    assert_peak Zstd.compress(text(128 * MIB)), 128 * MIB
    assert_peak Zstd.compress(text(4 * MIB)) * 40, 160 * MIB
  end

  # Grown in steps, but moved by the kernel, not copied: at most twice the output, and freed pages go back.
  def test_an_unknown_size_needs_at_most_twice_its_output
    need_proc
    packed = FrameBuilder.without_content_size(Zstd.compress(text(100 * MIB)))
    code = ONE_SHOT.sub("(size >> 10) + (8 << 10)", "(size >> 9) + (8 << 10)")
    Tempfile.create("frame") do |file|
      File.binwrite(file.path, packed)
      assert_child code, file.path, (100 * MIB).to_s
    end
  end

  def test_compress_needs_little_more_than_its_result
    need_proc
    assert_child <<~'RUBY'
      input = "\0" * (256 << 20)
      Zstd.compress(input.byteslice(0, 2 << 20))
      base = Probe.memory_kb("VmHWM")
      out = Zstd.compress(input)
      grown = Probe.memory_kb("VmHWM") - base
      abort "wrong" unless out.bytesize < 64 << 10
      abort "the peak grew by #{grown} KiB" if grown > 24 << 10
    RUBY
  end

  def test_a_result_gives_its_memory_back
    need_proc
    assert_child <<~'RUBY'
      packed = FrameBuilder.zeros(96 << 20)
      5.times { Zstd.decompress(packed).clear }
      GC.start
      before = Probe.memory_kb
      20.times { Zstd.decompress(packed).clear }
      GC.start
      grown = Probe.memory_kb - before
      abort "grew by #{grown} KiB" if grown > 16 << 10
    RUBY
  end
end
