# frozen_string_literal: true

# One Ruby codec as a child process: the protocol is the one of benches/floor/src/main.rs.

require_relative "bench"

module Bench
  # Answers one line per command.
  class Worker
    def initialize(codec)
      @codec = codec
      @records = {}
    end

    def answer(command, *words)
      case command
      when "load" then load(*words)
      when "compress" then compress(*words)
      when "decompress" then timed(words[0]) { @codec.decompress_each(@records.fetch("frames")) }
      else raise ArgumentError, "not a command: #{command}"
      end
    end

    private

    def compress(level, passes)
      level = level == "default" ? nil : Integer(level)
      timed(passes) { @codec.compress_each(@records.fetch("samples"), level) }
    end

    def load(kind, path)
      bytes = File.binread(path)
      offset = 0
      @records[kind] = []
      while offset < bytes.bytesize
        length = bytes.unpack1("V", offset:)
        @records[kind] << bytes.byteslice(offset + 4, length)
        offset += 4 + length
      end
      bytes.clear
      "ok"
    end

    # The garbage of the step before is not this one's to sweep; its own is.
    def timed(passes, &pass)
      GC.start
      started = clocks
      Integer(passes).times(&pass)
      clocks.zip(started).map { |ended, start| ended - start }.join(" ")
    end

    def clocks
      [Process::CLOCK_MONOTONIC, Process::CLOCK_PROCESS_CPUTIME_ID].map do |clock|
        Process.clock_gettime(clock, :nanosecond)
      end
    end
  end

  worker = Worker.new(Codecs.load)
  $stdout.sync = true
  $stdin.each_line do |line|
    puts worker.answer(*line.split)
  rescue StandardError => e
    puts "error #{e.class}: #{e.message.lines.first}"
  end
end
