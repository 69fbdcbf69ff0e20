# frozen_string_literal: true

require "etc"

module Bench
  # What a figure depends on beside the code, and whether others were using the machine meanwhile.
  class Machine
    # Above these a ratio of a few percent cannot be told from chance.
    BUSY_CORES = 0.25
    WIDE_SPREAD = 0.10

    def self.memory_available
      kib = File.read("/proc/meminfo")[/^MemAvailable:\s+(\d+)/, 1]
      kib && (Integer(kib) << 10)
    rescue SystemCallError
      nil
    end

    # Bytes for the run of 2 GiB: MB= says otherwise, and a small machine gets what it can hold.
    def self.large_size
      return Integer(ENV.fetch("MB")) * MIB if ENV.key?("MB")

      available = memory_available
      return 2 * GIB if available.nil? || available >= 4 * GIB

      1 << (available / 4).bit_length.pred.clamp(26, 30)
    end

    def self.load_average
      File.read("/proc/loadavg").split.first(3).join(" ")
    rescue SystemCallError
      `uptime`[/load averages?: (.*)/, 1] || "unknown"
    end

    def self.cpu_model
      File.read("/proc/cpuinfo")[/^(?:model name|Model)\s*:\s*(.*)/, 1] || RbConfig::CONFIG["host_cpu"]
    rescue SystemCallError
      name = `sysctl -n machdep.cpu.brand_string`.chomp
      name.empty? ? RbConfig::CONFIG["host_cpu"] : name
    end

    # A field of /proc/self/status such as VmRSS or VmHWM, in bytes; nil where there is none (not Linux).
    def self.status(field)
      kib = File.read("/proc/self/status")[/^#{field}:\s+(\d+)/, 1]
      kib && (Integer(kib) << 10)
    rescue SystemCallError
      nil
    end

    def initialize
      @spreads = []
      @started = Bench.now
      @all = cpu_of_all
      @own = cpu_of_own
    end

    # Prints the head of a report and gives the Machine to end it with; nil in the process of a peer, whose parent
    # reports.
    def self.report(title, *notes)
      return unless Codecs.ours?

      require "zstd_rb"
      puts "## #{title}", "", head, ""
      notes.each { |note| puts note, "" }
      $stdout.flush
      new
    end

    def self.head
      peers = Codecs.installed_peers.map { |name, version| "#{name} #{version}" }
      ["Ruby #{RUBY_VERSION} (#{RUBY_PLATFORM}), zstd_rb #{Zstd::VERSION}, libzstd #{Zstd::LIBZSTD_VERSION}", *peers,
       cpu_model, "#{Etc.nprocessors} cores", "load average #{load_average}", *("QUICK" if Bench.quick?)].join(", ")
    end

    # Takes repeats of one measurement, which should be equal.
    def repeats(values)
      @spreads << Bench.spread(values) if values.size > 2
    end

    # Call it when all children have been waited for: until then their time counts as other people's.
    def close
      remarks = []
      others = others_cores
      remarks << format("others used %.2f cores meanwhile", others) if others
      spread = Bench.median(@spreads) unless @spreads.empty?
      remarks << "repeats lie #{Bench.percent(spread)} apart (half of them, median)" if spread
      noisy = (others && others > BUSY_CORES) || (spread && spread > WIDE_SPREAD)
      puts "", "#{noisy ? "NOISY: read the ratios with care" : "Noise"}: #{remarks.join(", ")}." unless remarks.empty?
      puts
    end

    private

    def others_cores
      return unless @all

      [(cpu_of_all - @all) - (cpu_of_own - @own), 0.0].max / (Bench.now - @started)
    end

    # user nice system - - irq softirq steal, since boot, of all cores. What a hypervisor stole counts too.
    def cpu_of_all
      ticks = File.foreach("/proc/stat").first.split.drop(1).map { |word| Integer(word) }
      ticks.values_at(0, 1, 2, 5, 6, 7).compact.sum.fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
    rescue SystemCallError
      nil
    end

    def cpu_of_own
      Process.times.to_a.sum
    end
  end
end
