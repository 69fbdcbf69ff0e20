# frozen_string_literal: true

require "test_helper"

# Signals in mid-call, in children. Each child has itself signalled once its main thread is inside the call.
class SignalTest < ZstdTest
  # Defines `input`, and `signal_inside`: has a signal sent when the main thread is in the method.
  PRELUDE = <<~'RUBY'
    $stdout.sync = true
    input = Corpus.hard(48 << 20)
    signal_inside = lambda do |name, signal|
      main = Thread.current
      # It sleeps on: that other threads may have ended is a test of its own.
      Thread.new { Probe.wait_inside(main, name); Probe.signal(signal); sleep }
    end
  RUBY

  def run_signal_child(code, **options)
    run_child(PRELUDE + code, timeout: 60, **options)
  end

  def assert_signal_child(code, **options)
    output, status = run_signal_child(code, **options)
    assert_predicate status, :success?, output
    output
  end

  def test_sigint_without_a_trap_ends_the_process_as_it_should
    { "compress" => "Zstd.compress(input, level: 19)",
      "decompress" => "Zstd.decompress(FrameBuilder.zeros(1 << 30))" }.each do |name, call|
      output, status = run_signal_child(<<~RUBY)
        at_exit { print "at_exit ran" }
        signal_inside["#{name}", :INT]
        #{call}
        print "the call came back"
      RUBY
      assert_equal Signal.list["INT"], status.termsig, output
      assert_includes output, "at_exit ran"
      refute_includes output, "the call came back"
      assert_includes output, "Interrupt"
    end
  end

  # CRuby decides when a region begins how a signal will wake it: at once when the main thread is alone, else by way
  # of another thread. Where all others have ended meanwhile, nobody calls the unblock function. Unheard, the signal
  # would have to wait for the end of the call, half a minute.
  def test_a_signal_is_heard_in_mid_call_though_the_other_threads_have_ended
    slow_test
    assert_signal_child(<<~'RUBY', timeout: 20)
      trap(:USR1) { raise KeyError, "heard" }
      spawn("sleep 0.4; kill -USR1 #{Process.pid}")
      Thread.new { sleep 0.1 }
      error = Probe.error { Zstd.compress(input, level: 19) }
      abort error.inspect unless error.is_a?(KeyError) && error.message == "heard"
    RUBY
  end

  def test_sigint_can_be_rescued
    assert_signal_child <<~'RUBY'
      signal_inside["compress", :INT]
      begin
        Zstd.compress(input, level: 19)
        abort "no Interrupt"
      rescue Interrupt => e
        abort "from #{e.backtrace.first}" unless Probe.inside?(e.backtrace, "compress")
      end
      abort "wrong after it" unless Zstd.decompress(Zstd.compress("fine")) == "fine"
    RUBY
  end

  def test_sigterm_ends_the_process
    _output, status = run_signal_child(<<~'RUBY')
      signal_inside["compress", :TERM]
      Zstd.compress(input, level: 19)
    RUBY
    assert_equal Signal.list["TERM"], status.termsig
  end

  # The handler runs in mid-call on the same thread; the call goes on where it was.
  def test_a_trap_that_returns_lets_the_call_go_on_to_a_right_result
    assert_signal_child <<~'RUBY'
      text = Corpus.text(128 << 20)
      packed = Zstd.compress(text)
      seen = []
      trap(:USR1) { seen << caller.any? { |line| line.match?(/compress/) } }
      { "decompress" => [-> { Zstd.decompress(packed) }, text], "compress" => [-> { Zstd.compress(text) }, packed] }.each do |name, (job, right)|
        seen.clear
        main, stop = Thread.current, false
        signals = Thread.new do
          Probe.wait_inside(main, name)
          until stop
            Probe.signal(:USR1)
          end
        end
        result = job.call
        stop = true
        signals.join
        abort "#{name}: no handler ran in mid-call" unless seen.any?
        abort "#{name}: wrong result" unless result == right
      end
    RUBY
  end

  # Compression goes on with the same bytes, as if it had never been stopped.
  def test_a_stopped_and_continued_compress_makes_the_same_bytes
    assert_signal_child <<~'RUBY'
      part = input.byteslice(0, 3 << 19)
      right = Zstd.compress(part, level: 19)
      ran = 0
      trap(:USR1) { ran += 1 }
      main, stop = Thread.current, false
      signals = Thread.new do
        Probe.wait_inside(main, "compress")
        until stop
          Probe.signal(:USR1)
          sleep 0.01
        end
      end
      result = Zstd.compress(part, level: 19)
      stop = true
      signals.join
      abort "the handler ran #{ran} times" if ran < 3
      abort "other bytes" unless result == right
    RUBY
  end

  def test_a_trap_that_raises_comes_out_of_the_call
    assert_signal_child <<~'RUBY'
      trap(:USR1) { raise KeyError, "from the trap" }
      signal_inside["compress", :USR1]
      begin
        Zstd.compress(input, level: 19)
        abort "nothing raised"
      rescue KeyError => e
        abort e.message unless e.message == "from the trap"
      end
      abort "wrong after it" unless Zstd.decompress(Zstd.compress("fine", level: 19)) == "fine"
    RUBY
  end

  def test_exit_in_a_trap_ends_the_process_with_its_status
    output, status = run_signal_child(<<~'RUBY')
      at_exit { print "at_exit ran" }
      trap(:USR1) { exit 7 }
      signal_inside["compress", :USR1]
      begin
        Zstd.compress(input, level: 19)
      ensure
        print "ensured, "
      end
    RUBY
    assert_equal 7, status.exitstatus, output
    assert_equal "ensured, at_exit ran", output
  end

  def test_exit_in_another_thread_ends_the_process_in_mid_call
    output, status = run_signal_child(<<~'RUBY')
      main = Thread.current
      Thread.new { Probe.wait_inside(main, "compress"); main.raise SystemExit.new(9) }
      Zstd.compress(input, level: 19)
    RUBY
    assert_equal 9, status.exitstatus, output
  end

  def test_calls_inside_a_trap_handler_work_even_in_mid_call
    assert_signal_child <<~'RUBY'
      text = Corpus.text(48 << 20)
      inner = []
      trap(:USR1) { inner << Zstd.decompress(Zstd.compress(text.byteslice(0, 300_000), level: 1)) }
      signal_inside["compress", :USR1]
      packed = Zstd.compress(text, level: 3)
      abort "the handler did not run" if inner.empty?
      abort "wrong inside" unless inner.all? { |result| result == text.byteslice(0, 300_000) }
      abort "wrong outside" unless Zstd.decompress(packed) == text
    RUBY
  end

  # From inside the call nobody may find the half-written String; its capacity would give it away.
  def test_the_result_is_not_to_be_found_before_it_is_done
    need_memory 2
    assert_signal_child <<~'RUBY'
      require "objspace"
      size = 512 << 20
      found = nil
      large = -> { ObjectSpace.each_object(String).count { |s| ObjectSpace.memsize_of(s) > size / 4 || s.bytesize > size / 4 } }
      trap(:USR1) { found ||= [caller.any? { |line| line.include?("decompress") }, large.call] }
      abort "the measure sees nothing" unless ("x" * size) && large.call == 1
      GC.start
      { "known" => FrameBuilder.zeros(size), "unknown" => FrameBuilder.without_content_size(Zstd.compress("\0" * (64 << 20))) * 8 }.each do |kind, packed|
        GC.start
        before = large.call
        found = nil
        signal_inside["decompress", :USR1]
        result = Zstd.decompress(packed)
        abort "#{kind}: no handler in mid-call" unless found&.first
        abort "#{kind}: found #{found.last}, before #{before}" unless found.last == before
        abort "#{kind}: the measure sees nothing" unless large.call == before + 1
        result.clear
      end
    RUBY
  end
end
