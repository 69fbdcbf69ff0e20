# frozen_string_literal: true

module Bench
  # A thread that notes the time every half millisecond: where it is silent, the process was frozen.
  module Heartbeat
    PERIOD = 0.0005

    Beats = Struct.new(:seconds, :inside, :largest_stall) do
      def per_second
        inside / seconds
      end
    end

    module_function

    def beside(&call)
      stop = false
      stamps = []
      thread = Thread.new do
        until stop
          stamps << Bench.now
          sleep PERIOD
        end
      end
      sleep 0.05
      beats(stamps, call)
    ensure
      stop = true
      thread&.join
    end

    def beats(stamps, call)
      started = Bench.now
      call.call
      ended = Bench.now
      inside = stamps.select { |stamp| stamp.between?(started, ended) }
      stall = [started, *inside, ended].each_cons(2).map { |from, to| to - from }.max
      Beats.new(ended - started, inside.size, stall)
    end
  end

  # Threads that never sleep, as a template or a parser does not: the ones that a call must wait for to have the GVL
  # back.
  module Busy
    module_function

    # Yields beside `count` busy threads; gives how many turns they made per second.
    def beside(count, &call)
      stop = false
      threads = Array.new(count) do
        Thread.new do
          turns = 0
          turns += 1 until stop
          turns
        end
      end
      elapsed = Bench.seconds(&call)
      stop = true
      threads.sum(&:value) / elapsed
    ensure
      stop = true
      threads&.each(&:join)
    end
  end
end
