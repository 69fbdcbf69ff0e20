# frozen_string_literal: true

# What a call costs in memory: the peak of one large call over its input and output, and whether bad input and
# timeouts leave anything behind. Every row is measured in a process of its own, whose peak is that row's alone.

require_relative "support/bench"
require "open3"
require "tmpdir"
require "timeout"

module Bench
  # The measurements, each run in a child: `ruby benches/memory.rb NAME PATH [LEVEL]`. Answers are hashes.
  module MemoryChild
    BAD_FRAMES = 10_000
    # As many as are measured: the heap's fragments reach their final size only after some thousand.
    WARM_UP = BAD_FRAMES
    SEED = 20_160_229

    module_function

    def decompress(path)
      frame = File.binread(path)
      peak_of(frame.bytesize) { codec.decompress(frame) }
    end

    def compress(path, level)
      input = File.binread(path)
      peak_of(input.bytesize) { codec.compress(input, Integer(level)) }
    end

    def bad_frames(path)
      codec
      frame = File.binread(path)
      random = Random.new(SEED)
      WARM_UP.times { refused?(broken(frame, random)) }
      refused = 0
      growth_of { BAD_FRAMES.times { refused += 1 if refused?(broken(frame, random)) } }
        .merge(note: "#{refused} of #{BAD_FRAMES} refused")
    end

    def timeouts_decompress(path)
      frame = File.binread(path)
      timeouts(Bench.quick? ? 50 : 200, 0.02) { codec.decompress(frame) }
    end

    def timeouts_compress(path, level)
      input = File.binread(path)
      timeouts(Bench.quick? ? 20 : 50, 0.05) { codec.compress(input, Integer(level)) }
    end

    def codec
      @codec ||= Codecs.load
    end

    # The input is in memory before and counted in the first reading.
    def peak_of(input_size)
      codec
      GC.start
      before = Machine.status("VmRSS")
      output = yield
      peak = Machine.status("VmHWM")
      { input: input_size, output: output.bytesize, peak:, over: peak - before - output.bytesize }
    end

    def growth_of
      GC.start
      before = Machine.status("VmRSS")
      yield
      GC.start
      { growth: Machine.status("VmRSS") - before, peak: Machine.status("VmHWM") }
    end

    def timeouts(count, limit, &call)
      late = []
      (count / 10).times { timed_out?(limit, [], call) }
      hits = 0
      growth = growth_of { hits = Array.new(count) { timed_out?(limit, late, call) }.count(true) }
      contexts = "; contexts alive: #{Zstd.stats.contexts}" if Codecs.ours?
      growth.merge(note: "#{hits} of #{count} timed out, the latest #{Bench.duration(late.max || 0)} late#{contexts}")
    end

    def timed_out?(limit, late, call)
      started = Bench.now
      Timeout.timeout(limit) { call.call }
      false
    rescue Timeout::Error
      late << (Bench.now - started - limit)
      true
    end

    def broken(frame, random)
      copy = frame.dup
      return copy.byteslice(0, random.rand(1...copy.bytesize)) if random.rand(4).zero?

      random.rand(1..8).times { copy.setbyte(random.rand(copy.bytesize), random.rand(256)) }
      copy
    end

    def refused?(frame)
      codec.decompress(frame)
      false
    rescue StandardError
      true
    end
  end

  # The parent: makes the inputs, starts the children, prints the table.
  class Memory
    COLUMNS = ["call", "input", "output", "peak RSS", "over input and output", "growth", "note"].freeze

    def initialize
      @size = Bench.quick? ? 256 * MIB : GIB
      @codec = Codecs.load
    end

    def rows
      Dir.mktmpdir { |dir| peaks(dir) + (Codecs.ours? ? leaks(dir) : []) }
    end

    private

    def peaks(dir)
      text = write(dir, "text", Corpus.take("text", @size))
      text_frame = write(dir, "text.zst", @codec.compress(File.binread(text), 1))
      zeros_frame = write(dir, "zeros.zst", @codec.compress("\0".b * @size, 3))
      GC.start
      [row("decompress zeros", :decompress, zeros_frame), row("decompress text", :decompress, text_frame),
       row("compress text, level 3", :compress, text, 3)]
    end

    def leaks(dir)
      small = write(dir, "small.zst", Zstd.compress(Corpus.take("text", 10 * KIB), checksum: true))
      large = write(dir, "large.zst", Zstd.compress(Corpus.take("binary", MIB)))
      hard = write(dir, "hard", Corpus.take("binary", 48 * MIB))
      [row("bad frames of 10 KiB", :bad_frames, small), row("bad frames of 1 MiB", :bad_frames, large),
       row("timeouts, decompress zeros", :timeouts_decompress, File.join(dir, "zeros.zst")),
       row("timeouts, compress 48 MiB at level 19", :timeouts_compress, hard, 19)]
    end

    def write(dir, name, bytes)
      File.join(dir, name).tap { |path| File.binwrite(path, bytes) }
    end

    def row(title, *arguments)
      Bench.progress(title)
      output, status = Open3.capture2(RbConfig.ruby, __FILE__, *arguments.map(&:to_s))
      raise "#{title}: #{status}" unless status.success?

      measured = JSON.parse(output, symbolize_names: true)
      [title, *measured.values_at(:input, :output, :peak, :over, :growth).map { |bytes| bytes && amount(bytes) },
       measured[:note]]
    end

    def amount(bytes)
      bytes.abs < 10 * KIB ? "#{bytes} B" : format("%.1f MiB", bytes.fdiv(MIB))
    end
  end

  if ARGV.any?
    puts JSON.generate(MemoryChild.public_send(*ARGV))
  elsif Machine.status("VmRSS")
    machine = Machine.report("Memory", "`over input and output`: peak RSS less the RSS before the call (input " \
                             "included) and the output. `growth`: RSS after all of it, less RSS after a warm-up.")
    Bench.table_with_peers(__FILE__, *Memory::COLUMNS) { Memory.new.rows }
    machine&.close
  else
    puts "## Memory", "", "Needs /proc/self/status, which only Linux has."
  end
end
