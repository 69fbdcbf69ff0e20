# frozen_string_literal: true

require "test_helper"

# Timeout, Thread#raise, Thread#kill, and how a call goes on when nothing was raised after all. Everything
# runs in children: an interrupt that is not heard shows as a child that has to be killed.
class InterruptTest < ZstdTest
  # The memory peak tells how far a call got: a gigabyte decoded to its end has touched a gigabyte.
  def test_timeout_stops_a_decompress_long_before_its_end
    need_proc
    need_memory 2
    assert_child <<~'RUBY'
      require "timeout"
      packed = FrameBuilder.zeros(1 << 30)
      noisy = FrameBuilder.without_content_size(Zstd.compress("\0" * (64 << 20))) * 16
      [packed, noisy].each do |bytes|
        GC.start
        base = Probe.reset_peak
        begin
          Timeout.timeout(0.02) { Zstd.decompress(bytes) }
          abort "no timeout"
        rescue Timeout::Error
          grown = Probe.memory_kb("VmHWM") - base
          abort "got #{grown} KiB far" if grown > 768 << 10
        end
      end
      abort "not counted: #{Zstd.stats}" if Zstd.stats.interrupted < 2
    RUBY
  end

  # Each of these compressions takes ten seconds and more when nobody stops it.
  def test_timeout_stops_a_level_19_compress_within_a_step
    slow_test
    assert_child <<~'RUBY', timeout: 45
      require "timeout"
      input = Corpus.hard(48 << 20)
      6.times do |round|
        Timeout.timeout(0.05) { Zstd.compress(input, level: 19) }
        abort "round #{round}: no timeout"
      rescue Timeout::Error
        abort "not counted: #{Zstd.stats}" if Zstd.stats.interrupted <= round
      end
      abort "wrong after the timeouts" unless Zstd.decompress(Zstd.compress("still right", level: 19)) == "still right"
    RUBY
  end

  def test_two_hundred_timeouts_leave_contexts_and_memory_flat
    slow_test
    need_proc
    assert_child <<~'RUBY'
      require "timeout"
      packed = FrameBuilder.without_content_size(Zstd.compress("\0" * (64 << 20))) * 16
      input = Corpus.hard(24 << 20)
      small = Zstd.compress("small")
      stopped = 0
      run = lambda do |count|
        count.times do |i|
          Timeout.timeout(0.01) { i.even? ? Zstd.decompress(packed) : Zstd.compress(input, level: 9) }
        rescue Timeout::Error
          stopped += 1
          abort "wrong after a timeout" unless Zstd.decompress(small) == "small"
        end
        GC.start
      end
      run[20]
      contexts, resident = Zstd.stats.contexts, Probe.memory_kb
      Zstd.stats.reset
      stopped = 0
      run[200]
      grown = Probe.memory_kb - resident
      abort "#{stopped} stopped" if stopped < 190
      abort "interrupted: #{Zstd.stats.interrupted}" if Zstd.stats.interrupted < 150
      abort "contexts: #{contexts}, then #{Zstd.stats.contexts}" if Zstd.stats.contexts > contexts + 1
      abort "grew by #{grown} KiB" if grown > 48 << 10
    RUBY
  end

  def test_thread_kill_ends_a_call_and_runs_its_ensure
    assert_child <<~'RUBY'
      jobs = { "decompress" => -> { Zstd.decompress(FrameBuilder.zeros(1 << 30)) },
               "compress" => -> { Zstd.compress($input, level: 19) } }
      $input = Corpus.hard(48 << 20)
      jobs.each do |name, job|
        ensured = finished = false
        thread = Thread.new { begin job.call; finished = true ensure ensured = true end }
        Probe.wait_inside(thread, name)
        thread.kill
        abort "#{name}: still alive" unless thread.join(20)
        abort "#{name}: finished" if finished
        abort "#{name}: no ensure" unless ensured
      end
    RUBY
  end

  def test_thread_raise_comes_out_of_the_call
    assert_child <<~'RUBY'
      input = Corpus.hard(48 << 20)
      { "decompress" => -> { Zstd.decompress(FrameBuilder.zeros(1 << 30)) },
        "compress" => -> { Zstd.compress(input, level: 19) } }.each do |name, job|
        thread = Thread.new { Probe.error(&job) }
        Probe.wait_inside(thread, name)
        thread.raise KeyError, "from outside"
        abort "#{name}: still alive" unless thread.join(20)
        error = thread.value
        abort "#{name}: #{error.class}" unless error.is_a?(KeyError) && error.message == "from outside"
        abort "#{name}: #{error.backtrace.first}" unless Probe.inside?(error.backtrace, name)
      end
    RUBY
  end

  def test_handle_interrupt_never_defers_until_the_block_ends
    assert_child <<~'RUBY'
      size = 512 << 20
      packed = FrameBuilder.zeros(size)
      done = nil
      thread = Probe.start_inside("decompress") do
        Thread.handle_interrupt(KeyError => :never) { done = Zstd.decompress(packed).bytesize }
        :not_raised
      rescue KeyError
        :raised
      end
      5.times { thread.raise KeyError, "later" }
      abort "still alive" unless thread.join(30)
      abort "the call was cut short" unless done == size
      abort "lost" unless thread.value == :raised
    RUBY
  end

  def test_handle_interrupt_on_blocking_hears_the_interrupt_in_mid_call
    assert_child <<~'RUBY', timeout: 45
      input = Corpus.hard(48 << 20)
      thread = Thread.new do
        Thread.handle_interrupt(KeyError => :on_blocking) { Zstd.compress(input, level: 19) }
      rescue KeyError
        :raised
      end
      Probe.wait_inside(thread, "compress")
      thread.raise KeyError
      abort "still alive" unless thread.join(20) && thread.value == :raised
    RUBY
  end

  # Every wakeup sets the flag; none of them means death.
  def test_a_call_that_is_woken_for_nothing_goes_on_and_is_right
    assert_child <<~'RUBY'
      input = Corpus.text(48 << 20)
      packed = Zstd.compress(input)
      { "decompress" => [-> { Zstd.decompress(packed) }, input], "compress" => [-> { Zstd.compress(input) }, packed] }.each do |name, (job, expected)|
        thread = Probe.start_inside(name, &job)
        begin
          thread.wakeup while thread.alive? && !thread.join(0.001)
        rescue ThreadError
          nil # it ended first
        end
        abort "#{name}: wrong" unless thread.value == expected
      end
    RUBY
  end

  def test_an_interrupted_call_leaves_others_alone
    assert_child <<~'RUBY'
      input = Corpus.text(3 << 20)
      packed = Zstd.compress(input)
      workers = Array.new(3) { Thread.new { Array.new(25) { Zstd.decompress(packed) == input }.all? } }
      30.times do
        victim = Probe.start_inside("decompress") { Zstd.decompress(FrameBuilder.zeros(1 << 30)) }
        victim.kill
        abort "alive" unless victim.join(20)
      end
      abort "a worker went wrong" unless workers.all?(&:value)
    RUBY
  end

  def test_the_main_thread_may_end_while_others_are_in_mid_call
    output, status = run_child(<<~'RUBY', timeout: 45)
      input = Corpus.hard(48 << 20)
      threads = Array.new(2) { Thread.new { Zstd.compress(input, level: 19) } }
      threads.each { |thread| Probe.wait_inside(thread, "compress") }
      print "bye"
    RUBY
    assert_predicate status, :success?, output
    assert_equal "bye", output
  end

  def test_an_uncaught_interrupt_reaches_the_thread_s_joiner
    packed = FrameBuilder.zeros(512 * MIB)
    thread = Probe.start_inside("decompress") do
      Thread.current.report_on_exception = false
      Zstd.decompress(packed)
    end
    thread.raise KeyError, "seen by join"
    assert_equal "seen by join", assert_raises(KeyError) { thread.join(30) }.message
  end
end
