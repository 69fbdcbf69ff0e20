# frozen_string_literal: true

require "rbconfig"

module Bench
  # Real data that every machine with Ruby has: Ruby's own library as text, shared objects as binaries. What a zero
  # page or a repeated word measures is not what users send.
  module Corpus
    LIMIT = 256 * MIB

    module_function

    # `bytes` of `kind`. A corpus that is too short is repeated: the distance is then far over the window, so that
    # no match reaches the copy before.
    def take(kind, bytes)
      all = whole(kind)
      return all.byteslice(0, bytes) if all.bytesize >= bytes

      repeated = all * ((bytes / all.bytesize) + 1)
      repeated.byteslice(0, bytes)
    end

    # `count` pieces of `bytes`, spread evenly over the corpus.
    def samples(kind, bytes, count)
      return [take(kind, bytes)] if count == 1 || whole(kind).bytesize < bytes * count

      all = whole(kind)
      step = (all.bytesize - bytes) / (count - 1)
      Array.new(count) { |index| all.byteslice(index * step, bytes) }
    end

    def whole(kind)
      @whole ||= {}
      @whole[kind] ||= read({ "text" => text_files, "binary" => binary_files }.fetch(kind))
    end

    def forget
      @whole = nil
    end

    def text_files
      roots = [RbConfig::CONFIG["rubylibdir"], RbConfig::CONFIG["vendordir"], *Gem.path]
      roots.uniq.flat_map { |root| Dir.glob("#{root}/**/*.{rb,rbs,rdoc,md}") }.uniq.sort
    end

    def binary_files
      libraries = [RbConfig::CONFIG["libdir"], "/usr/lib"].uniq.flat_map { |root| Dir.glob("#{root}/**/*.so{,.*}") }
      [RbConfig.ruby, *libraries.uniq.sort]
    end

    def read(paths)
      seen = {}
      paths.each_with_object(String.new(encoding: Encoding::BINARY)) do |path, all|
        next if all.bytesize >= LIMIT || !File.file?(path) || !File.readable?(path)

        # A library has several names by links; the second copy would compress to nothing.
        real = File.realpath(path)
        all << File.binread(real) unless seen[real]
        seen[real] = true
      end
    end
  end
end
