# frozen_string_literal: true

# What is left of the speed beside threads that are busy in Ruby, and what those threads keep of theirs. A heartbeat
# sleeps, so it cannot show this: only a thread that wants the GVL back makes a call wait for a time slice.

require_relative "support/bench"

module Bench
  # One row is one size, number of busy threads, and setting of the guard.
  class Contention
    SIZES = [100, KIB, 60_000, 64 * KIB].freeze
    LARGE = 256 * MIB
    LEVEL = 3
    # A call that took this long lost the GVL for the time slice of another.
    SLOW = 0.020
    COLUMNS = ["call", "size", "busy threads", "guard", "calls per s", "of alone", "busy threads keep", "slowest call",
               "calls over 20 ms", "released", "held"].freeze

    # One window of calls. `turns` are those of the busy threads, per second.
    Window = Struct.new(:rate, :slowest, :slow, :turns, :calls, :released, :held)

    def initialize
      @codec = Codecs.load
      @rounds = Bench.quick? ? 1 : 3
      @window = Bench.quick? ? 0.5 : 1.5
    end

    # The block gets each set of repeats, to judge the noise by.
    def rows(&repeats)
      @turns_alone = Bench.median(Array.new(3) { Busy.beside(1) { sleep 0.2 } })
      Bench.list("SIZE", SIZES).flat_map { |size| small(size, &repeats) } + (ENV.key?("SIZE") ? [] : large)
    end

    private

    def small(size, &repeats)
      text = Corpus.samples("text", size, 3)[1]
      raise "other bytes came back" unless @codec.decompress(@codec.compress(text, LEVEL)) == text

      measure("round trip", size, least: 3, repeats:) do |note|
        frame = note.call { @codec.compress(text, LEVEL) }
        note.call { @codec.decompress(frame) }
      end
    end

    def large
      size = Bench.quick? ? LARGE / 4 : LARGE
      frame = @codec.compress(Corpus.take("text", size), LEVEL)
      Corpus.forget
      measure("decompress", size, least: Bench.quick? ? 2 : 3) { |note| note.call { @codec.decompress(frame) } }
    end

    # Every setting in turn within a round, so that each is compared with the `alone` of its own time.
    def measure(name, size, least:, repeats: nil, &step)
      settings = [0, 1, 2].product(Codecs.ours? ? [true, false] : [nil])
      rounds = Array.new(@rounds) do |round|
        settings.rotate(round).to_h do |busy, guard|
          Bench.progress("#{name} #{size}, #{busy} busy, guard #{guard}")
          [[busy, guard], window(busy, guard, least, step)]
        end
      end
      repeats&.call(rounds.map { |round| round[settings.first].rate })
      settings.map { |setting| row(name, size, setting, rounds) }
    end

    def window(busy, guard, least, step)
      GC.start
      Zstd.convoy_guard = guard unless guard.nil?
      Zstd.stats.reset if Codecs.ours?
      result = nil
      turns = Busy.beside(busy) { result = calls(least, step) }
      result.turns = turns
      if Codecs.ours?
        result.released = Zstd.stats.releases
        result.held = Zstd.stats.holds
      end
      result
    ensure
      Zstd.convoy_guard = true unless guard.nil?
    end

    # Steps until the window is over, and at least `least` of them.
    def calls(least, step)
      durations = []
      note = lambda do |&call|
        started = Bench.now
        answer = call.call
        durations << (Bench.now - started)
        answer
      end
      steps = 0
      started = Bench.now
      while steps < least || Bench.now - started < @window
        step.call(note)
        steps += 1
      end
      Window.new(steps / (Bench.now - started), durations.max, durations.count { |each| each > SLOW }, nil,
                 durations.size)
    end

    def row(name, size, setting, rounds)
      busy, guard = setting
      windows = rounds.map { |round| round[setting] }
      share = Bench.median(rounds.map { |round| round[setting].rate / round[[0, guard]].rate })
      kept = Bench.median(windows.map(&:turns)) / @turns_alone
      [name, Bench.size(size), busy, { true => "on", false => "off" }[guard], rate(Bench.median(windows.map(&:rate))),
       Bench.percent(share), (Bench.percent(kept) if busy.positive?), Bench.duration(windows.map(&:slowest).max),
       "#{windows.sum(&:slow)} of #{windows.sum(&:calls)}", *counts(windows)]
    end

    def rate(per_second)
      per_second >= 100 ? per_second.round : format("%.2f", per_second)
    end

    def counts(windows)
      Codecs.ours? ? [windows.sum(&:released), windows.sum(&:held)] : [nil, nil]
    end
  end

  machine = Machine.report("Contention", "`of alone`: beside as many busy threads / beside none, same guard. A fair " \
                           "share of one lock is a half beside one busy thread, a third beside two; `busy threads " \
                           "keep` is all of them together / one with nothing beside it. Calls are single calls, two " \
                           "to a round trip.")
  Bench.table_with_peers(__FILE__, *Contention::COLUMNS) { Contention.new.rows { |alone| machine&.repeats(alone) } }
  machine&.close
end
