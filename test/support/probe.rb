# frozen_string_literal: true

# What a test can see of a process from inside it: memory, and whether a thread is in mid-call.
# Loaded by the tests and by the child processes that they start.
module Probe
  module_function

  # "VmRSS" (resident now) or "VmHWM" (its peak), in KiB.
  def memory_kb(field = "VmRSS")
    File.read("/proc/self/status")[/^#{field}:\s*(\d+)/, 1].to_i
  end

  def memory?
    File.readable?("/proc/self/status")
  end

  def available_gib
    return 0.0 unless File.readable?("/proc/meminfo")

    File.read("/proc/meminfo")[/^MemAvailable:\s*(\d+)/, 1].to_f / (1 << 20)
  end

  # A call was over before anyone saw it run: the machine's fault, so try again.
  class Missed < StandardError; end

  # Returns once `thread` is inside the native method `name`. Whoever runs this holds the GVL, so the
  # thread itself is then in its released region, or waits to come back from it.
  def wait_inside(thread, name)
    wait_until("thread is inside #{name}") do
      raise Missed, "the thread ended before it was seen inside #{name}" unless thread.alive?

      inside?(thread.backtrace, name)
    end
  end

  # Starts a thread with the block and returns it once it is inside. A block that was over too soon to be seen runs
  # again.
  def start_inside(name, &job)
    tries ||= 0
    thread = Thread.new(&job)
    wait_inside(thread, name)
    thread
  rescue Missed
    (tries += 1) < 30 ? retry : raise
  end

  # Sends a signal to this process from another one, as Ctrl-C and kill do. One that Ruby sends to itself takes
  # another way.
  def signal(name)
    # The shell's own kill: a small system has no program of that name.
    system("sh", "-c", "kill -#{name} #{Process.pid}") || raise("no signal was sent")
  end

  # The native part of `compress` is a method `compress_string`. Ruby 3.4 writes 'Zstd.compress_string' where older
  # ones write `compress_string'.
  def inside?(backtrace, name)
    backtrace&.first.to_s.match?(/[`'.]#{name}_string'\z/)
  end

  # A bound against hanging, not a measurement.
  def wait_until(what, limit: 30)
    deadline = now + limit
    until yield
      raise "waited #{limit} s, but never: #{what}" if now > deadline

      sleep 0.001
    end
  end

  # The exception of the block, nil when it ended without one.
  def error
    yield
    nil
  rescue StandardError => e
    e
  end

  # Makes the peak of this process what it holds now, where the kernel lets us; gives that peak in KiB.
  def reset_peak
    File.write("/proc/self/clear_refs", "5")
    memory_kb("VmHWM")
  rescue SystemCallError
    memory_kb("VmHWM")
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Runs the block while another thread is busy in Ruby code.
  def beside_busy_thread
    stop = false
    busy = Thread.new { nil until stop }
    yield
  ensure
    stop = true
    busy&.join
  end
end
