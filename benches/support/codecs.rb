# frozen_string_literal: true

require "open3"
require "rbconfig"

module Bench
  # The gems under measurement, behind one pair of methods. Each lives in a process of its own: zstd_rb and zstd-ruby
  # both define `Zstd`, and a heap that one has filled is not the other's to sweep.
  module Codecs
    LIB = File.expand_path("../../lib", __dir__)

    # zstd_rb, and zstd-ruby, whose module has the same name and the same two methods.
    class ZstdModule
      def initialize(feature)
        require feature
      end

      def compress(string, level)
        Zstd.compress(string, level:)
      end

      def decompress(string)
        Zstd.decompress(string)
      end

      # The loops are here, not in the caller: one more method call is a tenth of what a small decompress takes.
      # A keyword costs as much too, and most callers name none: nil is the gem's default, level 3.
      def compress_each(strings, level)
        return strings.each { |string| Zstd.compress(string) } unless level

        strings.each { |string| Zstd.compress(string, level:) }
      end

      def decompress_each(strings)
        strings.each { |string| Zstd.decompress(string) }
      end
    end

    # The gem vibe_zstd.
    class VibeModule
      def initialize(feature)
        require feature
      end

      def compress(string, level)
        VibeZstd.compress(string, level:)
      end

      def decompress(string)
        VibeZstd.decompress(string)
      end

      def compress_each(strings, level)
        return strings.each { |string| VibeZstd.compress(string) } unless level

        strings.each { |string| VibeZstd.compress(string, level:) }
      end

      def decompress_each(strings)
        strings.each { |string| VibeZstd.decompress(string) }
      end
    end

    # Ruby's own zlib.
    class ZlibModule
      def initialize(feature)
        require feature
      end

      def compress(string, level)
        Zlib::Deflate.deflate(string, level)
      end

      def decompress(string)
        Zlib::Inflate.inflate(string)
      end

      def compress_each(strings, level)
        strings.each { |string| Zlib::Deflate.deflate(string, level) }
      end

      def decompress_each(strings)
        strings.each { |string| Zlib::Inflate.inflate(string) }
      end
    end

    OURS = "zstd_rb"
    PEERS = { "zstd-ruby" => ZstdModule, "vibe_zstd" => VibeModule }.freeze
    ALL = { OURS => ZstdModule, "zlib" => ZlibModule, **PEERS }.freeze

    module_function

    # Requires the gem of this process and gives its adapter.
    def load
      # Other gems may have a file of a peer's name, as ours has for those who change over.
      gem(current_name) if PEERS.key?(current_name)
      ALL.fetch(current_name).new(current_name)
    end

    # The codec that this process is to measure: ours, unless its parent says otherwise.
    def current_name
      ENV.fetch("CODEC", OURS)
    end

    def ours?
      current_name == OURS
    end

    # Versions of the peer gems installed on this machine, by name; PEERS=0 leaves them out.
    def installed_peers
      @installed_peers ||= ENV["PEERS"] == "0" ? {} : PEERS.keys.to_h { |name| [name, version(name)] }.compact
    end

    def version(name)
      script = "gem ARGV.first; require ARGV.first; print Gem.loaded_specs.fetch(ARGV.first).version"
      output, _, status = unbundled { Open3.capture3(RbConfig.ruby, "-e", script, name) }
      output if status.success?
    end

    # Runs `script` once more for each peer gem and gives what each run printed.
    def each_peer(script, *arguments)
      installed_peers.each_key do |name|
        output, status = unbundled { Open3.capture2({ "CODEC" => name }, RbConfig.ruby, script, *arguments) }
        raise "#{name}: #{status}" unless status.success?

        yield name, output
      end
    end

    # A peer is in nobody's Gemfile, so Bundler would hide it.
    def unbundled(&block)
      defined?(Bundler) ? Bundler.with_unbundled_env(&block) : yield
    end
  end

  $LOAD_PATH.unshift(Codecs::LIB) if Codecs.ours?
end
