# frozen_string_literal: true

require "rake/testtask"

Rake::TestTask.new(:test) do |t|
  t.description = "Run the Ruby tests (TEST=path runs one file, TESTOPTS=\"-n name\" one test)"
  t.deps = [:compile]
  t.libs = %w[lib test]
  t.test_files = FileList["test/**/*_test.rb"]
  t.warning = true
end

namespace :test do
  desc "Run the Rust tests"
  task :rust do
    sh "cargo", "test", "--workspace", "--locked"
  end

  desc "Check that libzstd is compiled for speed, from what its build prints"
  task :flags do
    sh({ "CC_ENABLE_DEBUG_OUTPUT" => "1" },
       "cargo", "build", "--release", "--locked", "--package", "zstd-sys", "--target-dir", "target/flags")
    compiled = FileList["target/flags/release/build/zstd-sys-*/output"].flat_map { |path| File.readlines(path) }
                                                                       .grep(%r{^running: .*"-c" "zstd/lib/})
    slow = compiled.grep_v(/"-O3"/).grep_v(/\.S"/)
    abort "libzstd is not compiled with -O3:\n#{slow.first}" if compiled.empty? || slow.any?
    abort "frame pointers slow libzstd down" if compiled.grep(/no-omit-frame-pointer/).any?
    puts "#{compiled.size} files of libzstd, all with -O3 and without frame pointers"
  end
end
