# frozen_string_literal: true

# Do more threads do more work? Workers take one String from a queue again and again, the way a job runner would.
# Everything is relative to one worker, measured in turns with the others.

require_relative "support/bench"

module Bench
  # One row is one call and size, one column one number of threads.
  class Threads
    SIZES = [256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, MIB].freeze
    LEVEL = 3
    MOST_ITEMS = 600_000

    def self.counts
      [1, *Bench.list("THREADS", [2, 4])].uniq
    end

    def self.columns
      ["call", "size", "1 thread", *counts.drop(1).map { |count| "#{count} threads" }, "2 processes"]
    end

    def initialize
      @codec = Codecs.load
      @rounds = Bench.quick? ? 3 : 7
      @window = Bench.quick? ? 0.1 : 0.3
    end

    # The block gets each set of repeats, to judge the noise by.
    def rows(&repeats)
      Bench.list("SIZE", SIZES).flat_map do |size|
        text = Corpus.samples("text", size, 3)[1]
        calls(text).map { |name, call| row(name, size, call, &repeats) }
      end
    end

    private

    def calls(text)
      frame = @codec.compress(text, LEVEL)
      raise "#{Codecs.current_name}: other bytes came back" unless @codec.decompress(frame) == text

      { "decompress" => -> { @codec.decompress(frame) }, "compress" => -> { @codec.compress(text, LEVEL) },
        "round trip" => -> { @codec.decompress(@codec.compress(text, LEVEL)) } }
    end

    def row(name, size, call)
      Bench.progress("#{name} #{size}")
      items = item_count(call)
      rounds = Array.new(@rounds) do |round|
        lanes.rotate(round).to_h { |lane| [lane, lane == :forked ? forked_rate(items, call) : rate(lane, items, call)] }
      end
      alone = rounds.map { |round| round[1] }
      yield alone
      [name, Bench.size(size), "#{Bench.median(alone).round} per s",
       *[*self.class.counts.drop(1), :forked].map { |lane| relative(rounds, lane) }]
    rescue StandardError => e
      # A peer may refuse one String in two threads; that is its figure.
      [name, Bench.size(size), *lanes.map { e.class.name }]
    end

    def lanes
      [*self.class.counts, *(:forked if Process.respond_to?(:fork))]
    end

    def item_count(call)
      call.call
      calls = 0
      elapsed = Bench.seconds do
        ended = Bench.now + (@window / 4)
        while Bench.now < ended
          call.call
          calls += 1
        end
      end
      (calls / elapsed * @window).ceil.clamp(16, MOST_ITEMS)
    end

    # Calls per second by `count` workers that empty a queue.
    def rate(count, items, call)
      queue = Queue.new
      items.times { queue << true }
      count.times { queue << nil }
      GC.start
      items / Bench.seconds { Array.new(count) { worker(queue, call) }.each(&:join) }
    end

    # Calls per second by two processes: what two cores have to give just now, without any lock between them.
    def forked_rate(items, call)
      share = items / 2
      children = Array.new(2) { IO.popen("-") || forked_worker(share, call) }
      children.sum do |pipe|
        seconds = Float(pipe.read)
        pipe.close
        share / seconds
      end
    end

    # A child's first calls pay for the pages that it no longer shares with its parent.
    def forked_worker(items, call)
      (items / 10).times { call.call }
      $stdout.write(Bench.seconds { items.times { call.call } })
      $stdout.flush
      exit!
    end

    def worker(queue, call)
      thread = Thread.new { call.call while queue.pop }
      thread.report_on_exception = false
      thread
    end

    def relative(rounds, lane)
      Bench.times(Bench.median(rounds.map { |round| round[lane] / round[1] })) if rounds.first[lane]
    end
  end

  machine = Machine.report("Threads", "Workers at one queue; all use the same String. `2 processes` is " \
                                      "what two cores have to give: the others are to be read beside it.")
  Bench.table_with_peers(__FILE__, *Threads.columns) { Threads.new.rows { |alone| machine&.repeats(alone) } }
  machine&.close
end
