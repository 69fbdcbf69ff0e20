# frozen_string_literal: true

require "mkmf"
require "rb_sys/mkmf"

abort "zstd_rb is built with Rust 1.85 or newer, and there is no cargo on the PATH" unless find_executable("cargo")

create_rust_makefile("zstd_rb/zstd_rb") do |config|
  # Users build what was tested: the versions in the shipped Cargo.lock, or nothing.
  config.extra_cargo_args += ["--locked"]
  # Never fetch and run an installer behind the user's back, which is what rb_sys does by default.
  config.auto_install_rust_toolchain = false
end
