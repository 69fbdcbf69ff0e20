# frozen_string_literal: true

require "digest"
require "json"
require "open3"
require "rbconfig"
require "tempfile"
require "timeout"
require "minitest/autorun"
require "zstd_rb"
require_relative "support/corpus"
require_relative "support/frame_builder"
require_relative "support/probe"

# What every test has at hand. Process-wide settings go back to their defaults after each test.
class ZstdTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  LIB = File.join(ROOT, "lib")
  DATA = File.join(__dir__, "data")
  MIB = 1 << 20
  GIB = 1 << 30
  BLOCK = FrameBuilder::BLOCK_MAX
  # Options every child runs with; warnings are faults, but for Ruby's notice that Ractors are experimental.
  CHILD = [RbConfig.ruby, "-w", "-W:no-experimental", "-I#{LIB}", "-I#{__dir__}",
           "-rzstd_rb", "-rsupport/corpus", "-rsupport/frame_builder", "-rsupport/probe"].freeze

  def teardown
    Zstd.convoy_guard = true
    Zstd.max_output_size = nil
  end

  def data(*path)
    File.binread(File.join(DATA, *path))
  end

  def text(size) = Corpus.text(size)
  def noise(size) = Corpus.noise(size)
  def frame(...) = FrameBuilder.frame(...)
  def raw(bytes) = FrameBuilder.raw(bytes)
  def rle(byte, count) = FrameBuilder.rle(byte, count)

  # As assert_equal, but a failure does not print megabytes.
  def assert_bytes(expected, actual, message = nil)
    assert_kind_of String, actual, message
    return pass if expected.b == actual

    at = (0...[expected.bytesize, actual.bytesize].min).find { |i| expected.getbyte(i) != actual.getbyte(i) }
    flunk "#{message}: #{expected.bytesize} bytes expected, #{actual.bytesize} got, " \
          "first difference at #{at || "the end"}"
  end

  def assert_round_trip(bytes, message = nil, **options)
    packed = Zstd.compress(bytes, **options)
    assert_bytes bytes, Zstd.decompress(packed), message || "#{bytes.bytesize} bytes, #{options}"
    packed
  end

  # The class exactly: a subclass is another promise.
  def assert_error(expected, message = nil, &block)
    error = assert_raises(Zstd::Error, message, &block)
    assert_equal expected, error.class, "#{message}: #{error.class}: #{error.message}"
    assert_instance_of Symbol, error.code, message
    error
  end

  # Runs Ruby code in a process of its own, with the gem and the helpers in test/support loaded. A child that is
  # not done within `timeout` seconds hangs: it is killed, and the test fails with what it printed.
  def run_child(code, *args, timeout: 90, env: {})
    Tempfile.create("child") do |out|
      pid = Process.spawn(env, *CHILD, "-e", code, *args, %i[out err] => out.path, in: File::NULL)
      status = wait_for(pid, timeout)
      output = File.read(out.path)
      flunk "child still running after #{timeout} s:\n#{output}" unless status
      [output, status]
    end
  end

  def assert_child(code, *args, **options)
    output, status = run_child(code, *args, **options)
    assert status.success?, "child ended with #{status}:\n#{output}"
    refute_match(/warn(ing)?:/, output)
    output
  end

  # Polls, because Process.wait2 has no deadline; nil when the deadline passed and the child was killed.
  def wait_for(pid, seconds)
    deadline = Probe.now + seconds
    until (found = Process.wait2(pid, Process::WNOHANG))
      if Probe.now > deadline
        Process.kill(:KILL, pid)
        Process.wait(pid)
        return nil
      end
      sleep 0.005
    end
    found.last
  end

  # Marks a test that takes seconds. They run by default; SKIP_SLOW=1 leaves them out.
  def slow_test
    skip "slow, and SKIP_SLOW is set" if ENV["SKIP_SLOW"]
  end

  def need_memory(gib)
    have = Probe.available_gib
    return if have >= gib

    warn "\n!! #{name} SKIPPED: needs #{gib} GiB of free memory, has #{have.round(1)}"
    skip "needs #{gib} GiB of free memory"
  end

  def need_proc
    skip "needs /proc/self/status" unless Probe.memory?
  end

  def need_fork
    skip "no fork on this platform" unless Process.respond_to?(:fork)
  end

  # What the block did to the counters of Zstd.stats, by name.
  def counted
    before = Zstd.stats.to_h
    yield
    after = Zstd.stats.to_h
    after.to_h { |name, value| [name, value - before[name]] }
  end

  # The zstd command line tool, as another implementation to agree with.
  def zstd_cli(*args, input:)
    skip "the zstd command line tool is not installed" unless ZstdTest.cli?
    Open3.capture2e("zstd", *args, stdin_data: input, binmode: true)
  end

  def self.cli?
    return @cli if defined?(@cli)

    @cli = !Open3.capture2e("zstd", "--version").first.empty?
  rescue Errno::ENOENT
    @cli = false
  end
end
