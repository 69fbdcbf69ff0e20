# frozen_string_literal: true

require "test_helper"

# Other threads while a call runs, and calls from unusual places.
class ThreadTest < ZstdTest
  # Ticks of a thread that sleeps half a millisecond each time, while the block runs.
  def ticks
    count = 0
    stop = false
    heart = Thread.new do
      until stop
        count += 1
        sleep 0.0005
      end
    end
    sleep 0.02
    before = count
    yield
    count - before
  ensure
    stop = true
    heart&.join
  end

  # The same thread beside a plain sleep of the same length is the yardstick. A call that held the lock would score
  # near 0; half is far below what is right, but a CI machine has other things to do too.
  def assert_heart_beats(name, &call)
    shares = Array.new(4) do
      length = nil
      during = ticks do
        started = Probe.now
        call.call
        length = Probe.now - started
      end
      share = during.to_f / [ticks { sleep length }, 1].max
      return pass if share > 0.5

      share
    end
    flunk "#{name}: the heartbeat fell to #{shares.max} of what it is beside sleep"
  end

  def test_a_heartbeat_goes_on_during_a_large_decompress
    packed = FrameBuilder.zeros(512 * MIB)
    assert_heart_beats("zeros") { Zstd.decompress(packed).clear }
    real = Zstd.compress(text(96 * MIB), level: 1)
    assert_heart_beats("text") { Zstd.decompress(real).clear }
  end

  def test_a_heartbeat_goes_on_during_a_large_compress
    input = Corpus.hard(6 * MIB)
    assert_heart_beats("level 19") { Zstd.compress(input.byteslice(0, MIB), level: 19) }
    assert_heart_beats("level 3") { 4.times { Zstd.compress(input) } }
  end

  # The walk over the block headers comes before the first byte of output, and may be long.
  def test_a_heartbeat_goes_on_during_the_walk_of_a_million_blocks
    packed = frame(*([raw("")] * 1000), window_log: 10) * 2_000
    assert_heart_beats("walk") { assert_equal "", Zstd.decompress(packed) }
  end

  def test_threads_decompress_different_things_at_once
    inputs = Array.new(8) { |i| Corpus.noise(100_000, seed: i) + text(500_000 + i) }
    packed = inputs.map { |input| Zstd.compress(input) }
    threads = inputs.each_index.map do |i|
      Thread.new { Array.new(20) { Zstd.decompress(packed[i]) == inputs[i] && Zstd.compress(inputs[i]) == packed[i] } }
    end
    assert_equal [true], threads.flat_map(&:value).uniq
  end

  def test_small_calls_from_many_threads_are_right
    threads = Array.new(16) do |i|
      Thread.new do
        300.times.all? do |j|
          input = "thread #{i} call #{j}" * (1 + (j % 50))
          Zstd.decompress(Zstd.compress(input, level: (j % 7) - 3)) == input
        end
      end
    end
    assert threads.all?(&:value)
  end

  def test_errors_in_one_thread_leave_others_alone
    right = text(200_000)
    good = Zstd.compress(right, checksum: true)
    bad = good.dup.tap { |bytes| bytes.setbyte(1000, bytes.getbyte(1000) ^ 0xFF) }
    threads = Array.new(6) do |i|
      Thread.new do
        30.times.all? do
          i.even? ? Zstd.decompress(good) == right : Zstd.decompress(bad) && false
        rescue Zstd::Error
          i.odd?
        end
      end
    end
    assert_equal [true] * 6, threads.map(&:value)
  end

  def test_calls_inside_a_fiber
    right = text(3 * MIB)
    fiber = Fiber.new do
      packed = Zstd.compress(right)
      Fiber.yield packed
      Zstd.decompress(packed)
    end
    packed = fiber.resume
    assert_bytes packed, Zstd.compress(right)
    assert_bytes right, fiber.resume
  end

  def test_calls_inside_an_enumerator_and_a_thread_s_own_fibers
    threads = Array.new(3) do |i|
      Thread.new do
        packer = Enumerator.new { |y| 20.times { |j| y << Zstd.compress("#{i} #{j}" * 1000) } }
        20.times.all? { |j| Zstd.decompress(packer.next) == "#{i} #{j}" * 1000 }
      end
    end
    assert threads.all?(&:value)
  end

  # A handler runs inside the call's own events, so a call inside it is a call inside a call.
  def test_calls_inside_a_tracepoint_handler
    inner = []
    busy = false
    trace = TracePoint.new(:c_call, :c_return) do
      next if busy

      busy = true
      inner << Zstd.decompress(Zstd.compress("traced" * 100))
      busy = false
    end
    right = text(300_000)
    result = trace.enable { Zstd.decompress(Zstd.compress(right)) }
    assert_bytes right, result
    assert_operator inner.size, :>=, 2
    assert_equal ["traced" * 100], inner.uniq
  end

  def test_a_tracepoint_sees_the_calls_and_their_errors
    seen = []
    trace = TracePoint.new(:c_call, :call) { |tp| seen << tp.method_id if tp.self.equal?(Zstd) }
    trace.enable do
      Zstd.decompress(Zstd.compress("a"))
      assert_raises(Zstd::Error) { Zstd.decompress("nope") }
    end
    assert_equal %i[compress decompress decompress], seen.grep(/press\z/)
  end

  def test_calls_inside_at_exit_and_finalizers
    output = assert_child <<~'RUBY'
      at_exit { print Zstd.decompress(Zstd.compress("outer ")) }
      at_exit do
        threads = Array.new(3) { Thread.new { Zstd.decompress(Zstd.compress(Corpus.text(2 << 20))).bytesize } }
        print threads.map(&:value).uniq == [2 << 20] ? "inner " : "wrong "
      end
      packed = Zstd.compress("finalizer ")
      ObjectSpace.define_finalizer(Object.new, proc { $stdout.write Zstd.decompress(packed) })
      END { print Zstd.inflate(Zstd.deflate("END ")) }
    RUBY
    # The object of the finalizer may be collected at any time before.
    assert_equal %w[END finalizer inner outer], output.split.sort
  end

  def test_calls_inside_a_mutex
    mutex = Mutex.new
    order = Queue.new
    threads = Array.new(4) do |i|
      input = text(MIB + i)
      Thread.new { mutex.synchronize { order << i if Zstd.decompress(Zstd.compress(input)) == input } }
    end
    threads.each(&:join)
    assert_equal [0, 1, 2, 3], Array.new(order.size) { order.pop }.sort
  end
end
