# frozen_string_literal: true

require "test_helper"
require "tmpdir"

# Every block of Ruby in the README runs as it stands, in an empty folder.
class ReadmeTest < ZstdTest
  README = File.join(ROOT, "README.md")

  def blocks
    lines = File.readlines(README)
    found = []
    lines.each_with_index do |line, index|
      next unless line.match?(/\A```ruby\b/)

      body = lines[(index + 1)..].take_while { |other| !other.start_with?("```") }
      found << [index + 2, body.join]
    end
    found
  end

  def test_every_ruby_block_runs
    refute_empty blocks, "no Ruby block found in the README"
    blocks.each do |line, code|
      Dir.mktmpdir do |dir|
        wrapped = "Dir.chdir(ARGV.shift)\neval(File.read(ARGV.shift), TOPLEVEL_BINDING, 'README.md', #{line})"
        file = File.join(dir, "block.rb")
        File.write(file, code)
        output, status = run_child(wrapped, dir, file)
        assert_predicate status, :success?, "README.md:#{line}\n#{code}\n#{output}"
      end
    end
  end
end
