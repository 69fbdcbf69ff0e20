# frozen_string_literal: true

require "tmpdir"

PACKAGE = "pkg/#{GEMSPEC.full_name}.gem".freeze

SMOKE_TEST = <<~'RUBY'
  require "zstd_rb"
  loaded = $LOADED_FEATURES.grep(/zstd_rb\.#{RbConfig::CONFIG["DLEXT"]}\z/)
  home = File.realpath(ENV.fetch("GEM_HOME"))
  installed = loaded.any? && loaded.all? { |path| File.realpath(path).start_with?(home) }
  abort "loaded from elsewhere: #{loaded}" unless installed

  text = "smoke and mirrors " * 10_000
  abort "wrong bytes back" unless Zstd.decompress(Zstd.compress(text)) == text.b
  puts "zstd_rb #{Zstd::VERSION} works from #{File.dirname(loaded.first)}"
RUBY

# The shell environment of somebody who installs the gem: none of this checkout's Bundler or Cargo settings,
# but the PATH that has cargo on it, which Bundler would put back to what it was.
def installing_elsewhere(gem_home)
  gem_path = [gem_home, *Gem.path].join(File::PATH_SEPARATOR)
  ours = ENV.keys.grep(/\ARB_SYS_/).to_h { |name| [name, nil] }
  env = ours.merge("GEM_HOME" => gem_home, "GEM_PATH" => gem_path, "PATH" => ENV.fetch("PATH"),
                   "RUBYLIB" => nil, "RUBYOPT" => nil)
  return yield env unless defined?(Bundler)

  Bundler.with_unbundled_env { yield env }
end

directory "pkg"

namespace :package do
  desc "Build the source gem"
  task build: "pkg" do
    sh "gem", "build", "zstd_rb.gemspec", "--output", PACKAGE
  end
end

desc "Build the source gem, install it into an empty GEM_HOME and use it from there"
task package: "package:build" do
  package = File.expand_path(PACKAGE)
  Dir.mktmpdir("zstd_rb-package") do |dir|
    gem_home = File.join(dir, "gems")
    elsewhere = File.join(dir, "elsewhere")
    mkdir_p [gem_home, elsewhere], verbose: false
    installing_elsewhere(gem_home) do |env|
      puts "installing #{PACKAGE} into an empty GEM_HOME"
      sh env, "gem", "install", "--local", "--no-document", package, chdir: elsewhere, verbose: false
      sh env, RbConfig.ruby, "-w", "-e", SMOKE_TEST, chdir: elsewhere, verbose: false
    end
  end
end
