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
end
