# frozen_string_literal: true

# Crates outside the gem's workspace, checked like the rest.
STANDALONE_CRATES = FileList["{benches/floor,fuzz}/Cargo.toml"]

desc "Check formatting and style of all code (rustfmt, Clippy, RuboCop, RBS)"
task lint: %w[lint:rustfmt lint:clippy lint:rubocop lint:rbs]

namespace :lint do
  desc "Check that rustfmt would change nothing"
  task :rustfmt do
    sh "cargo", "fmt", "--all", "--check"
    STANDALONE_CRATES.each { |manifest| sh "cargo", "fmt", "--manifest-path", manifest, "--check" }
  end

  desc "Run Clippy on every target, warnings denied"
  task :clippy do
    clippy = ["cargo", "clippy", "--all-targets", "--locked"]
    deny = ["--", "-D", "warnings"]
    sh(*clippy, "--workspace", *deny)
    # Into the same directory, so that `rake clean` finds all of it.
    STANDALONE_CRATES.each do |manifest|
      sh(*clippy, "--manifest-path", manifest, "--target-dir", "target", *deny)
    end
  end

  desc "Run RuboCop"
  task :rubocop do
    sh "bundle", "exec", "rubocop"
  end

  desc "Validate the signatures in sig/"
  task :rbs do
    # Through the library: Debian's Ruby comes with the gem but without its executable.
    cli = "RBS::CLI.new(stdout: $stdout, stderr: $stderr).run(ARGV)"
    ruby "-rrbs", "-rrbs/cli", "-e", cli, "--", "-I", "sig", "validate", "--silent"
  end
end
