# frozen_string_literal: true

# How much of a call is libzstd's own time. Real text and binaries, 100 B to 256 MiB, beside libzstd called from Rust
# with a warm context and buffer, Ruby's zlib, and each peer gem that is installed. All of them are child processes
# that take turns within each cell; figures are medians, ratios are medians of the ratios of each round. Times are by
# the clock; the ratios also by processor time, which other people's work on the machine does not spoil as much.

require_relative "support/bench"
require_relative "support/contender"
require "zstd_rb"
require "tmpdir"
require "zlib"

module Bench
  # One cell of the table is one size, kind of data, level and direction.
  class Throughput
    SIZES = [100, KIB, 10 * KIB, 64 * KIB, MIB, 16 * MIB, 256 * MIB].freeze
    # Memory of a new String is paid for page by page, which a warm buffer hides: from here on there is a second floor.
    FRESH_FROM = 64 * KIB
    # zlib is measured per byte of a shorter piece: at its own speed it would take most of the bench.
    ZLIB_LIMIT = 4 * MIB
    # zlib's levels of the same standing: fastest, default, best.
    ZLIB_LEVELS = { 1 => 1, 3 => 6, 9 => 9 }.freeze
    # Children, samples, frames and outputs of the largest size.
    MEMORY_FOR_LARGEST = 4 * GIB

    # Nanoseconds per byte, by the clock and of the processor.
    Cost = Struct.new(:wall, :cpu)
    # A contender's way to do one operation. `bytes` are what one pass through its records takes.
    Lane = Struct.new(:name, :contender, :command, :bytes, :passes)

    def initialize
      @window = Bench.quick? ? 0.01 : 0.04
      @least_rounds, @most_rounds = Bench.quick? ? [3, 5] : [3, 15]
      @cell_budget = Bench.quick? ? 0.5 : 4.0
    end

    def run
      @machine = Machine.report("Throughput, one thread", *notes)
      @floor = Contender.floor
      @gems = [Codecs::OURS, *Codecs.installed_peers.keys].map { |name| Contender.codec(name) }
      @zlib = Contender.codec("zlib")
      @table = Table.new("data", "size", "level", "call", "zstd_rb", "MB/s", "libzstd", "ratio", "CPU ratio",
                         "+ us CPU", "CPU ratio, new memory", "zlib", *@gems.drop(1).map(&:name))
      each_set { |kind, size| measure_set(kind, size) }
      [@floor, @zlib, *@gems].each(&:close)
      Bench.progress("")
      puts @table
      @machine.close
    end

    private

    def notes
      ["`ratio`: zstd_rb's time / libzstd's (warm context and buffer), `+ us CPU`: the difference in one call; `new " \
       "memory`: libzstd into memory allocated for each call; last columns: that library's time per byte / zstd_rb's " \
       "(zlib at levels 1, 6 and 9, on at most #{Bench.size(ZLIB_LIMIT)})."]
    end

    def each_set
      sizes = Bench.list("SIZE", Bench.quick? ? SIZES.first(5) : SIZES)
      kinds = ENV.fetch("DATA", "text,binary").split(",")
      kinds.product(sizes).each do |kind, size|
        available = Machine.memory_available
        if size > 64 * MIB && available && available < MEMORY_FOR_LARGEST
          puts "#{Bench.size(size)} of #{kind} is left out: less than #{Bench.size(MEMORY_FOR_LARGEST)} available.", ""
        else
          yield kind, size
        end
      end
    end

    def measure_set(kind, size)
      samples = Corpus.samples(kind, size, sample_count(size))
      short = samples.map { |sample| sample.byteslice(0, ZLIB_LIMIT) }
      Dir.mktmpdir do |dir|
        @dir = dir
        hand_out("samples", samples, short)
        Bench.list("LEVEL", Bench.quick? ? [3] : [1, 3, 9]).each do |level|
          hand_out("frames", samples.map { |sample| Zstd.compress(sample, level:) },
                   short.map { |sample| Zlib::Deflate.deflate(sample, ZLIB_LEVELS.fetch(level, 6)) })
          bytes = [samples.sum(&:bytesize), short.sum(&:bytesize)]
          measure_cell([kind, size, level, "compress"], level, *bytes)
          measure_cell([kind, size, level, "compress, no keyword"], "default", *bytes) if level == 3 && size < MIB
          measure_cell([kind, size, level, "decompress"], nil, *bytes)
        end
      end
    end

    # Several different samples, or the branch predictor learns a small one by heart.
    def sample_count(size)
      return 64 if size <= 64 * KIB

      size <= MIB ? 4 : 1
    end

    def hand_out(kind, records, short)
      path = Contender.write_records(File.join(@dir, kind), records)
      [@floor, *@gems].each { |contender| contender.ask("load", kind, path) }
      @zlib.ask("load", kind, Contender.write_records(File.join(@dir, "zlib"), short))
    end

    # `given` is the level as the gems are told it: a number, "default", or nil where there is none to tell.
    def measure_cell(cell, given, bytes, short_bytes)
      size = cell[1]
      operation = cell[3][/\w+/]
      level = cell[2] if given
      Bench.progress(cell.join(" "))
      lanes = @gems.map { |gem| Lane.new(gem.name, gem, [operation, given], bytes) }
      lanes << Lane.new("libzstd", @floor, [operation, level], bytes)
      lanes << Lane.new("fresh", @floor, [operation, level, "fresh"], bytes) if size >= FRESH_FROM
      lanes << Lane.new("zlib", @zlib, [operation, level && ZLIB_LEVELS.fetch(level, 6)], short_bytes)
      rounds = take_turns(lanes)
      @machine.repeats(rounds.map { |round| round["libzstd"].wall })
      add_row(cell, rounds)
    end

    # Rounds of costs, by name of the lane.
    def take_turns(lanes)
      cost = lanes.sum { |lane| calibrate(lane) }
      count = (@cell_budget / cost).floor.clamp(@least_rounds, @most_rounds)
      Array.new(count) do |round|
        lanes.rotate(round).to_h { |lane| [lane.name, cost_per_byte(lane)] }
      end
    end

    # Sets how many passes fill the window; gives the seconds that they will take.
    def calibrate(lane)
      nanoseconds(lane, 1)
      one = nanoseconds(lane, 1).first / 1e9
      lane.passes = (@window / one).floor.clamp(1, 10_000)
      one * lane.passes
    end

    def cost_per_byte(lane)
      Cost.new(*nanoseconds(lane, lane.passes).map { |sum| sum / lane.passes / lane.bytes })
    end

    def nanoseconds(lane, passes)
      operation, level, fresh = lane.command
      lane.contender.ask(operation, *level, passes, *fresh).split.map { |word| Float(word) }
    end

    def add_row(cell, rounds)
      kind, size, level, operation = cell
      ours, floor = [Codecs::OURS, "libzstd"].map { |name| Bench.median(rounds.map { |round| round[name].wall }) }
      @table.row(kind, Bench.size(size), level, operation, Bench.duration(ours * size / 1e9), (1000 / ours).round,
                 Bench.duration(floor * size / 1e9), ratio(rounds, Codecs::OURS, "libzstd", :wall),
                 ratio(rounds, Codecs::OURS, "libzstd", :cpu), difference(rounds, size),
                 (ratio(rounds, Codecs::OURS, "fresh", :cpu) if size >= FRESH_FROM),
                 *["zlib", *@gems.drop(1).map(&:name)].map { |name| ratio(rounds, name, Codecs::OURS, :cpu, 2) })
    end

    def ratio(rounds, name, other, clock, digits = 3)
      ratios = rounds.map { |round| round[name][clock] / round[other][clock] }
      Bench.times(Bench.median(ratios), digits)
    end

    def difference(rounds, size)
      format("%+.2f", Bench.median(rounds.map { |r| (r[Codecs::OURS].cpu - r["libzstd"].cpu) * size / 1e3 }))
    end
  end

  Throughput.new.run
end
