# frozen_string_literal: true

require "rake/clean"
require "rb_sys/extensiontask"

# rb_sys compiles with flags of its own (CC, RUSTFLAGS). In the directory of `cargo build` and
# `cargo test` each would throw away what the other built, libzstd included.
ENV["RB_SYS_CARGO_TARGET_DIR"] ||= File.expand_path("target/ruby")

RbSys::ExtensionTask.new("zstd_rb", GEMSPEC) do |ext|
  ext.lib_dir = "lib/zstd_rb"
  ext.source_pattern = "../engine/**/*.rs"
end

CLEAN.include("tmp")
CLOBBER.include("pkg", "doc", ".yardoc")
