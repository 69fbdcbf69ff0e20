# frozen_string_literal: true

require "test_helper"
require "tmpdir"

class LoadTest < ZstdTest
  def run_ruby(*args)
    output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I#{LIB}", *args)
    [output, status]
  end

  # zstd-ruby and extzstd define a module Zstd, an old gem named zstd a class.
  def test_beside_a_foreign_zstd_a_load_error_names_its_file
    { "module Zstd; def self.compress(string) = string; end" => "module", "class Zstd; end" => "class",
      "Zstd = Struct.new(:level)" => "constant" }.each do |source, kind|
      Dir.mktmpdir do |dir|
        path = File.join(dir, "foreign_zstd.rb")
        File.write(path, source)
        output, status = run_ruby("-r#{path}", "-e", <<~'RUBY')
          own = Zstd.singleton_methods(false).sort
          begin
            require "zstd_rb"
            abort "loaded"
          rescue LoadError => e
            puts e.message
          end
          abort "the foreign Zstd was opened" unless Zstd.singleton_methods(false).sort == own
          abort "constants were added" if Zstd.const_defined?(:LIBZSTD_VERSION) || Zstd.const_defined?(:Error, false)
        RUBY
        assert_predicate status, :success?, "#{kind}: #{output}"
        assert_includes output, path, kind
      end
    end
  end

  def test_loading_again_after_that_error_fails_again
    output, status = run_ruby("-e", <<~'RUBY')
      module Zstd; end
      2.times do
        require "zstd_rb"
        puts "loaded"
      rescue LoadError
        puts "refused"
      end
    RUBY
    assert_predicate status, :success?, output
    assert_equal "refused\nrefused\n", output
  end

  def test_requiring_twice_is_quiet_and_once_enough
    output, status = run_ruby("-e", <<~'RUBY')
      p require("zstd_rb"), require("zstd_rb"), Zstd.class
      load $LOADED_FEATURES.grep(%r{/zstd_rb\.rb\z}).first
      puts Zstd.decompress(Zstd.compress("fine"))
    RUBY
    assert_predicate status, :success?, output
    assert_equal "true\nfalse\nModule\nfine\n", output
  end

  # The version is read by the gemspec, before anything is built.
  def test_the_version_file_alone_leaves_room_for_the_rest
    output, status = run_ruby("-e", <<~'RUBY')
      require "zstd_rb/version"
      require "zstd_rb"
      puts Zstd::VERSION, Zstd.inflate(Zstd.deflate("fine"))
    RUBY
    assert_predicate status, :success?, output
    assert_equal "#{Zstd::VERSION}\nfine\n", output
  end

  def test_loading_in_a_thread_while_others_wait_for_it
    # Without -w: there Ruby remarks on every require that waits for another one.
    output, status = run_ruby("-W1", "-e", <<~'RUBY')
      puts Array.new(4) { Thread.new { require "zstd_rb"; Zstd.decompress(Zstd.compress("fine")) } }.map(&:value).uniq
    RUBY
    assert_predicate status, :success?, output
    assert_equal "fine\n", output
  end

  def test_nothing_is_defined_outside_zstd
    output, status = run_ruby("-e", <<~'RUBY')
      require "rbconfig"
      before = Object.constants
      methods = [String, Object, Kernel].map { |m| m.instance_methods.size + m.private_instance_methods.size }
      require "zstd_rb"
      p Object.constants - before
      abort "core classes changed" unless methods == [String, Object, Kernel].map { |m| m.instance_methods.size + m.private_instance_methods.size }
    RUBY
    assert_predicate status, :success?, output
    assert_equal "[:Zstd]\n", output
  end
end
