# frozen_string_literal: true

require "mkmf"
require "rb_sys/mkmf"

create_rust_makefile("zstd_rb/zstd_rb") do |config|
  # Users build what was tested: the versions in the shipped Cargo.lock, or nothing.
  config.extra_cargo_args += ["--locked"]
end
