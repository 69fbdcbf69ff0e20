# frozen_string_literal: true

# Every file straight in benches/ is a bench of its own; what they share lives in benches/support/.
BENCHES = FileList["benches/*.rb"]

desc "Run every bench"
task bench: BENCHES.map { |path| "bench:#{File.basename(path, ".rb")}" }

namespace :bench do
  BENCHES.each do |path|
    desc "Run #{path}"
    task File.basename(path, ".rb") => :compile do
      ruby "-Ilib", path
    end
  end
end
