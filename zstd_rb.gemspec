# frozen_string_literal: true

Gem::Specification.new do |spec|
  spec.name = "zstd_rb"
  # Read and not loaded: Bundler evaluates this file in every process, and Zstd would be defined before its time.
  spec.version = File.read(File.join(__dir__, "lib/zstd_rb/version.rb"))[/VERSION = "(.+)"/, 1]
  spec.authors = ["the zstd_rb authors"]
  spec.summary = "Zstandard for Ruby that never freezes the process"
  spec.description = <<~TEXT
    Compress and decompress Zstandard data without holding Ruby's global lock: other threads run on,
    Timeout and Thread#kill are heard in mid-call, and hostile input meets limits instead of memory.
    Written in Rust over libzstd.
  TEXT
  spec.license = "BSD-3-Clause"
  spec.metadata = {
    "cargo_crate_name" => "zstd_rb",
    "rubygems_mfa_required" => "true"
  }

  spec.required_ruby_version = ">= 3.1"
  # The first RubyGems that knows how to build Rust extensions.
  spec.required_rubygems_version = ">= 3.3.11"

  # Globs and not `git ls-files`: the gem must also build from a tarball, where there is no Git.
  spec.files = Dir.chdir(__dir__) do
    Dir[
      "lib/**/*.rb",
      "ext/**/*.{rs,toml,rb}",
      "sig/**/*.rbs",
      "docs/**/*.md",
      "Cargo.{toml,lock}",
      "{README,CHANGELOG,SECURITY}.md",
      "LICENSE*",
      ".yardopts"
    ].reject { |path| path.split("/").include?("target") }.sort
  end
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/zstd_rb/extconf.rb"]

  # Needed only while the extension is built, but RubyGems has no other way to say so.
  spec.add_dependency "rb_sys", "~> 0.9"
end
