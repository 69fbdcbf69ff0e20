# frozen_string_literal: true

require "rbconfig"

module Bench
  # A child process that measures on demand, so that the contenders can take turns within the same minute: on a
  # machine that others use too, two runs one after the other compare nothing.
  class Contender
    WORKER = File.expand_path("worker.rb", __dir__)
    FLOOR_CRATE = File.join(ROOT, "benches/floor")
    FLOOR_TARGET = File.join(ROOT, "target/floor")

    attr_reader :name

    # A Ruby gem, or zlib.
    def self.codec(name)
      start = -> { new(name, [{ "CODEC" => name }, RbConfig.ruby, WORKER]) }
      name == Codecs::OURS ? start.call : Codecs.unbundled(&start)
    end

    # libzstd without Ruby. Refuses to measure beside another libzstd than the gem's.
    def self.floor
      build_floor
      floor = new("libzstd", [File.join(FLOOR_TARGET, "release/zstd_floor")])
      version = floor.ask("version")
      return floor if version == Zstd::LIBZSTD_VERSION

      raise "the floor has libzstd #{version} and the gem #{Zstd::LIBZSTD_VERSION}: bring the two Cargo.lock together"
    end

    def self.build_floor
      ours, floors = [ROOT, FLOOR_CRATE].map { |dir| locked_zstd_sys(File.join(dir, "Cargo.lock")) }
      warn "the gem is locked to zstd-sys #{ours}, the floor to #{floors}" if ours && ours != floors
      command = %W[cargo build --quiet --release --locked --manifest-path #{FLOOR_CRATE}/Cargo.toml
                   --target-dir #{FLOOR_TARGET}]
      system({ "PATH" => path_with_cargo }, *command, exception: true)
    end

    # Scripts and services seldom have rustup's directory on their PATH.
    def self.path_with_cargo
      rustup = File.join(ENV.fetch("CARGO_HOME") { File.expand_path("~/.cargo") }, "bin")
      [rustup, ENV.fetch("PATH")].join(File::PATH_SEPARATOR)
    end

    def self.locked_zstd_sys(lock)
      File.read(lock)[/name = "zstd-sys"\nversion = "(.*)"/, 1] if File.exist?(lock)
    end

    # Records as the children read them: each a little-endian 32-bit length and its bytes.
    def self.write_records(path, records)
      File.open(path, "wb") do |file|
        records.each { |record| file.write([record.bytesize].pack("V"), record) }
      end
      path
    end

    def initialize(name, command)
      @name = name
      @pipe = IO.popen(command, "r+")
    end

    def ask(*words)
      @pipe.puts(words.join(" "))
      @pipe.flush
      answer = @pipe.gets&.chomp
      raise "#{name}: #{words.join(" ")}: #{answer || "died"}" if answer.nil? || answer.start_with?("error")

      answer
    end

    def close
      @pipe.close
    end
  end
end
