# frozen_string_literal: true

# Does another thread notice that a large call is running? A heartbeat every half millisecond, beside the call, beside
# a `sleep` of the same length, and beside the same work done by another process, which is what a second core costs
# even a process that does nothing.

require_relative "support/bench"
require_relative "support/contender"
require "tmpdir"

module Bench
  # One row of the table is one call.
  class HeartbeatBench
    COLUMNS = ["call", "data", "time", "beats inside", "beside sleep", "ratio", "largest stall", "beside sleep",
               "beside another process's call", "ratio to that"].freeze

    Case = Struct.new(:operation, :level, :bytes, :kind)
    # What was measured in one round: the call itself and its two yardsticks.
    Round = Struct.new(:call, :sleep, :process)

    def initialize
      @codec = Codecs.load
      @floor = Contender.floor if Codecs.ours?
      @rounds = Bench.quick? ? 1 : 3
    end

    def rows
      # A first heartbeat pays for the first thread and the first page of its notes.
      Heartbeat.beside { sleep 0.05 }
      cases.map { |kase| row(kase) }
    ensure
      @floor&.close
    end

    private

    def cases
      large = Bench.quick? ? 64 * MIB : 256 * MIB
      [Case.new("decompress", 3, large, "zeros"), Case.new("decompress", 3, Machine.large_size, "zeros"),
       Case.new("decompress", 3, large, "text"), Case.new("decompress", 3, large, "binary"),
       Case.new("compress", 3, large, "text"), Case.new("compress", 19, large / 16, "text")]
    end

    def row(kase)
      Bench.progress("#{kase.operation} #{kase.kind}")
      input = kase.kind == "zeros" ? "\0".b * kase.bytes : Corpus.take(kase.kind, kase.bytes)
      input = @codec.compress(input, kase.level) if kase.operation == "decompress"
      Corpus.forget
      hand_to_floor(kase, input)
      summary(kase, Array.new(@rounds) { round(kase, input) })
    end

    def hand_to_floor(kase, input)
      return unless @floor

      Dir.mktmpdir do |dir|
        kind = kase.operation == "decompress" ? "frames" : "samples"
        @floor.ask("load", kind, Contender.write_records(File.join(dir, kind), [input]))
      end
    end

    def round(kase, input)
      GC.start
      call = Heartbeat.beside do
        kase.operation == "decompress" ? @codec.decompress(input) : @codec.compress(input, kase.level)
      end
      GC.start
      Round.new(call, Heartbeat.beside { sleep call.seconds }, beside_process(kase))
    end

    def beside_process(kase)
      return unless @floor

      level = [kase.level] if kase.operation == "compress"
      Heartbeat.beside { @floor.ask(kase.operation, *level, 1, "fresh") }
    end

    def summary(kase, rounds)
      call = median(rounds, :call)
      asleep = median(rounds, :sleep)
      process = median(rounds, :process) if @floor
      ["#{kase.operation}#{" level #{kase.level}" if kase.operation == "compress"}",
       "#{Bench.size(kase.bytes)} #{kase.kind}", Bench.duration(call.seconds), call.inside, asleep.inside,
       Bench.percent(call.per_second / asleep.per_second), Bench.duration(call.largest_stall),
       Bench.duration(asleep.largest_stall), process && Bench.duration(process.largest_stall),
       process && Bench.percent(call.per_second / process.per_second)]
    end

    # Medians, but of the stalls the worst: one freeze is a freeze.
    def median(rounds, member)
      beats = rounds.map(&member)
      Heartbeat::Beats.new(Bench.median(beats.map(&:seconds)), Bench.median(beats.map(&:inside)).round,
                           beats.map(&:largest_stall).max)
    end
  end

  machine = Machine.report("Heartbeat", "`ratio`: beats per second beside the call / beside `sleep`; `ratio to " \
                           "that`: / beside the same call made by another process. Stalls are the worst of all rounds.")
  Bench.table_with_peers(__FILE__, *HeartbeatBench::COLUMNS) { HeartbeatBench.new.rows }
  machine&.close
end
