# frozen_string_literal: true

require "test_helper"

# A child must be able to call whatever its parent had used, also when another thread was in mid-call at the fork:
# that thread, and with it whatever it held, is gone in the child.
class ForkTest < ZstdTest
  # Checks on a child of a child, so that a hang kills only that. `work` proves that both directions are right.
  PRELUDE = <<~'RUBY'
    right = Corpus.text(3 << 20)
    packed = Zstd.compress(right)
    work = lambda do
      Zstd.decompress(packed) == right && Zstd.compress(right) == packed &&
        Zstd.decompress(Zstd.compress("small", level: 19)) == "small" &&
        Array.new(3) { Thread.new { Zstd.decompress(packed) == right } }.all?(&:value) &&
        Probe.error { Zstd.decompress("bad") }.is_a?(Zstd::FormatError)
    end
    fork_and_work = lambda do |what|
      pid = fork { exit!(work.call ? 0 : 1) }
      status = nil
      Probe.wait_until("#{what}: the forked child ends") { status = Process.wait2(pid, Process::WNOHANG)&.last }
      abort "#{what}: #{status}" unless status.success?
    end
  RUBY

  def assert_forks(code)
    need_fork
    assert_child(PRELUDE + code, timeout: 120)
  end

  def test_a_forked_child_can_use_everything
    assert_forks <<~'RUBY'
      fork_and_work["first"]
      abort "parent" unless work.call
      5.times { |i| fork_and_work["child #{i}"] }
      abort "parent" unless work.call
    RUBY
  end

  def test_fork_while_other_threads_are_in_mid_call
    assert_forks <<~'RUBY'
      hard = Corpus.hard(3 << 20)
      { "decompress" => -> { Zstd.decompress(FrameBuilder.zeros(512 << 20)).bytesize == 512 << 20 },
        "compress" => -> { Zstd.decompress(Zstd.compress(hard, level: 9)) == hard } }.each do |name, call|
        3.times do
          threads = [Probe.start_inside(name, &call), Thread.new(&call)]
          fork_and_work["in mid-#{name}"]
          abort "#{name}: wrong in the parent" unless threads.all?(&:value)
        end
      end
    RUBY
  end

  def test_fork_while_many_small_calls_run
    assert_forks <<~'RUBY'
      stop = false
      threads = Array.new(4) do
        Thread.new do
          good = true
          good &&= Zstd.decompress(Zstd.compress("tiny")) == "tiny" until stop
          good
        end
      end
      10.times { |i| fork_and_work["fork #{i}"] }
      stop = true
      abort "wrong in the parent" unless threads.all?(&:value)
    RUBY
  end

  def test_grandchildren_and_stats_in_a_child
    assert_forks <<~'RUBY'
      pid = fork do
        ok = work.call
        inner = fork { exit!(work.call ? 0 : 1) }
        ok &&= Process.wait2(inner).last.success?
        stats = Zstd.stats
        exit!(ok && stats.contexts.between?(0, 64) && stats.contexts >= stats.pooled_contexts ? 0 : 1)
      end
      abort "child" unless Process.wait2(pid).last.success?
    RUBY
  end
end
