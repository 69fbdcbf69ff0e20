# frozen_string_literal: true

# Refuses to load where another gem has already defined Zstd: two gems in one
# module would overwrite each other's methods in silence. A gemspec that reads
# our version has defined it too, but with nothing in it.
if Object.const_defined?(:Zstd, false) && !Object.autoload?(:Zstd)
  source, = Object.const_source_location(:Zstd)
  ours = source == File.expand_path("version.rb", __dir__)
  unless ours && Zstd.singleton_methods(false).empty?
    source = nil if ours
    source ||= $LOADED_FEATURES.grep(/zstd/i).reject { |path| path.start_with?(__dir__) }.last
    raise LoadError, <<~MESSAGE.tr("\n", " ").strip
      zstd_rb cannot be loaded: the constant Zstd is already defined by #{source || "another library"}.
      Load one of the two, not both: remove the other gem from the Gemfile (or its require),
      or do not require zstd_rb.
    MESSAGE
  end
end
