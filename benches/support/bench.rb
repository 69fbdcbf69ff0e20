# frozen_string_literal: true

# What every bench shares: settings, clock, statistics, the head of a report and its table.
#
#   QUICK=1            a short run: fewer sizes and rounds, the same table
#   SIZE=100,65536     only these sizes in bytes; likewise LEVEL=, THREADS=, DATA=text|binary

require "json"

module Bench
  ROOT = File.expand_path("../..", __dir__)
  KIB = 1 << 10
  MIB = 1 << 20
  GIB = 1 << 30

  module_function

  def quick?
    !["", "0"].include?(ENV.fetch("QUICK", ""))
  end

  # Settings by environment variable: a list of integers, commas between.
  def list(name, default)
    ENV.key?(name) ? ENV.fetch(name).split(",").map { |word| Integer(word) } : default
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def seconds
    started = now
    yield
    now - started
  end

  def median(values)
    quantile(values, 0.5)
  end

  def quantile(values, share)
    sorted = values.sort
    at = share * (sorted.size - 1)
    low = sorted[at.floor]
    low + ((sorted[at.ceil] - low) * (at - at.floor))
  end

  # How far repeats of one measurement lie apart: the middle half, as a share of the median.
  def spread(values)
    (quantile(values, 0.75) - quantile(values, 0.25)) / median(values)
  end

  def size(bytes)
    return "#{bytes / GIB} GiB" if bytes >= GIB && (bytes % GIB).zero?
    return "#{bytes / MIB} MiB" if bytes >= MIB && (bytes % MIB).zero?
    return format("%.1f MiB", bytes.fdiv(MIB)) if bytes >= MIB
    return "#{bytes / KIB} KiB" if bytes >= KIB && (bytes % KIB).zero?

    "#{bytes} B"
  end

  def duration(seconds)
    return format("%.2f s", seconds) if seconds >= 1
    return format("%.1f ms", seconds * 1e3) if seconds >= 1e-3

    format("%.2f us", seconds * 1e6)
  end

  def percent(share)
    format(share < 0.0095 ? "%.1f %%" : "%.0f %%", share * 100)
  end

  def times(ratio, digits = 2)
    format("%.#{digits}f x", ratio)
  end

  # One line that is overwritten by the next, for whoever watches; nothing in a pipe.
  def progress(text)
    $stderr.print("\r\e[K#{text}") if $stderr.tty?
  end

  # Prints the table: the rows of our gem, which the block gives, and those of each peer gem. For a peer the script
  # runs once more in a process of its own, where this prints the bare rows.
  def table_with_peers(script, *columns)
    rows = yield
    return puts(JSON.generate(rows)) unless Codecs.ours?

    table = Table.new("gem", *columns)
    rows.each { |row| table.row(Codecs::OURS, *row) }
    Codecs.each_peer(script) { |peer, output| JSON.parse(output).each { |row| table.row(peer, *row) } }
    progress("")
    puts table
  end

  # A markdown table whose columns also line up in a terminal.
  class Table
    def initialize(*columns)
      @rows = [columns]
    end

    def row(*cells)
      @rows << cells.map { |cell| cell.nil? ? "-" : cell.to_s }
    end

    def to_s
      widths = @rows.transpose.map { |column| column.map(&:length).max }
      lines = @rows.map { |row| "| #{row.zip(widths).map { |cell, width| cell.ljust(width) }.join(" | ")} |" }
      lines.insert(1, "|#{widths.map { |width| "-" * (width + 2) }.join("|")}|").join("\n")
    end
  end
end

require_relative "codecs"
require_relative "machine"
require_relative "corpus"
require_relative "beside"
