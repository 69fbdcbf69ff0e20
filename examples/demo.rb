# frozen_string_literal: true

# The main job, on real input: pack a directory tree, compress it, decompress it in four threads beside a thread that
# is busy in Ruby; then decompress 2 GiB. A heartbeat every half millisecond shows whether the process froze meanwhile.
# Exits with an error when a byte that comes back is wrong.

require_relative "../benches/support/bench"
require "rubygems/package"
require "stringio"

# One run with one gem. `Bench::Codecs.each_peer` runs this file once more for each peer gem that is installed.
class Demo
  THREADS = 4
  # Archives that each thread unpacks; one would be over before the busy thread's first time slice.
  TURNS = 5

  def initialize
    @codec = Bench::Codecs.load
    @figures = {}
  end

  # Figures by their name, in the order in which they were taken.
  def run
    # The first heartbeat pays for the first thread of the process.
    Bench::Heartbeat.beside { sleep 0.1 }
    archive_in_threads(packed_standard_library)
    zeros(Bench::Machine.large_size)
    @figures
  end

  private

  def packed_standard_library
    root = RbConfig::CONFIG.fetch("rubylibdir")
    sink = StringIO.new(String.new(encoding: Encoding::BINARY))
    count = 0
    Gem::Package::TarWriter.new(sink) do |tar|
      count = Dir.glob("#{root}/**/*").sort.count { |path| add(tar, root, path) }
    end
    @figures["tar of Ruby's standard library"] = "#{count} files, #{Bench.size(sink.string.bytesize)}"
    sink.string
  end

  def add(tar, root, path)
    return false unless File.file?(path) && File.readable?(path)

    bytes = File.binread(path)
    tar.add_file_simple(path.delete_prefix("#{root}/"), 0o644, bytes.bytesize) { |entry| entry.write(bytes) }
    true
  rescue Gem::Package::TooLongFileName
    false
  end

  def archive_in_threads(tar)
    frame = nil
    seconds = Bench.seconds { frame = @codec.compress(tar, 3) }
    @figures["compressed"] = "#{Bench.size(frame.bytesize)} in #{Bench.duration(seconds)}"
    unpacked = []
    beats = beside_busy { unpacked = in_threads { unpack(frame, tar.bytesize) } }
    wrong("the archive") unless unpacked.all? { |bytes| bytes == tar }
    title = "#{THREADS * TURNS} times decompressed by #{THREADS} threads, beside a busy one"
    report(title, beats, "threads that sleep") do
      beside_busy { in_threads { sleep beats.seconds } }
    end
  end

  def in_threads(&work)
    Array.new(THREADS) { Thread.new(&work) }.map(&:value)
  end

  def unpack(frame, size)
    Array.new(TURNS) { @codec.decompress(frame).tap { |bytes| wrong("the size") if bytes.bytesize != size } }.last
  end

  def beside_busy(&call)
    beats = nil
    Bench::Busy.beside(1) { beats = Bench::Heartbeat.beside(&call) }
    beats
  end

  # The measurement of zstd-ruby's issue 155: there the whole call was one stall.
  def zeros(size)
    frame = compressed_zeros(size)
    GC.start
    output = nil
    beats = Bench::Heartbeat.beside { output = @codec.decompress(frame) }
    wrong("the zeros") unless output.bytesize == size && zeros?(output)
    output = nil
    GC.start
    report("#{Bench.size(size)} decompressed", beats, "sleep") { Bench::Heartbeat.beside { sleep beats.seconds } }
  end

  def compressed_zeros(size)
    input = "\0".b * size
    frame = nil
    seconds = Bench.seconds { frame = @codec.compress(input, 3) }
    @figures["#{Bench.size(size)} of zeros compressed"] =
      "#{Bench.size(frame.bytesize)} in #{Bench.duration(seconds)}"
    frame
  end

  # In pieces: a second String of that size would double the memory.
  def zeros?(string)
    zero = "\0".b * Bench::MIB
    0.step(string.bytesize - 1, Bench::MIB).all? do |offset|
      piece = string.byteslice(offset, Bench::MIB)
      piece == zero || piece == zero.byteslice(0, piece.bytesize)
    end
  end

  def report(title, beats, yardstick)
    asleep = yield
    @figures[title] = Bench.duration(beats.seconds)
    @figures["- heartbeats inside (beside #{yardstick})"] = "#{beats.inside} (#{asleep.inside})"
    @figures["- largest stall (beside #{yardstick})"] =
      "#{Bench.duration(beats.largest_stall)} (#{Bench.duration(asleep.largest_stall)})"
  end

  def wrong(what)
    abort "demo: #{Bench::Codecs.current_name} gave #{what} back wrong"
  end
end

unless Bench::Codecs.ours?
  puts JSON.generate(Demo.new.run)
  exit
end

size = Bench::Machine.large_size
unless ENV.key?("MB") || size == 2 * Bench::GIB
  puts "Less than 4 GiB of memory available: #{Bench.size(size)} instead of 2 GiB."
end
# Once for all: the peers' runs must not come to another size.
ENV["MB"] = (size / Bench::MIB).to_s
figures = Demo.new.run

columns = { Bench::Codecs::OURS => figures }
Bench::Codecs.each_peer(__FILE__) { |peer, output| columns[peer] = JSON.parse(output) }
table = Bench::Table.new("", *columns.keys)
figures.each_key { |name| table.row(name, *columns.values.map { |each| each[name] }) }
puts Bench::Machine.head, ""
puts table
