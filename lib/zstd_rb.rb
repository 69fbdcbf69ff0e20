# frozen_string_literal: true

require_relative "zstd_rb/guard_namespace"
require_relative "zstd_rb/version"
require_relative "zstd_rb/errors"

begin
  # A precompiled gem has one library for each Ruby version.
  require "zstd_rb/#{RUBY_VERSION[/\d+\.\d+/]}/zstd_rb"
rescue LoadError => e
  raise unless e.path&.end_with?("zstd_rb/#{RUBY_VERSION[/\d+\.\d+/]}/zstd_rb")

  require "zstd_rb/zstd_rb"
end

require_relative "zstd_rb/stats"
require_relative "zstd_rb/module_functions"
require_relative "zstd_rb/compressor"
require_relative "zstd_rb/decompressor"
