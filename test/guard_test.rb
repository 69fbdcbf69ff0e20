# frozen_string_literal: true

require "test_helper"

# The convoy guard: small calls keep the lock when giving it up has been seen not to pay. Counted, not timed.
class GuardTest < ZstdTest
  def round_trips(count, bytes)
    count.times { assert_bytes bytes, Zstd.decompress(Zstd.compress(bytes)) }
  end

  def test_the_guard_is_on_by_default_and_a_switch
    assert_equal true, Zstd.convoy_guard
    Zstd.convoy_guard = false
    assert_equal false, Zstd.convoy_guard
    Zstd.convoy_guard = true
    assert_equal true, Zstd.convoy_guard
    Zstd.convoy_guard = nil
    assert_equal false, Zstd.convoy_guard
  end

  def test_small_calls_beside_a_busy_thread_learn_to_hold
    [100, 1000, 60_000].each do |size|
      counts = counted { Probe.beside_busy_thread { round_trips(size > 10_000 ? 300 : 1500, text(size)) } }
      assert_operator counts[:holds], :>, counts[:calls] / 2, "#{size} bytes: #{counts}"
    end
  end

  # It tries again now and then: a guard that never lets go would make the process deaf.
  def test_holding_calls_still_release_now_and_then
    counts = counted { Probe.beside_busy_thread { round_trips(1500, text(1000)) } }
    assert_operator counts[:releases], :>, 0
    assert_equal counts[:calls], counts[:holds] + counts[:releases]
  end

  def test_without_the_guard_every_call_releases
    Zstd.convoy_guard = false
    counts = counted do
      round_trips(500, text(1000))
      Probe.beside_busy_thread { round_trips(3, text(1000)) }
    end
    assert_equal({ calls: 1006, releases: 1006, holds: 0 }, counts.slice(:calls, :releases, :holds))
  end

  def test_large_calls_release_even_where_small_ones_hold
    large = text(6 * MIB)
    packed = Zstd.compress(large)
    Probe.beside_busy_thread do
      round_trips(300, text(1000))
      holds = Zstd.stats.holds
      counts = counted do
        assert_bytes large, Zstd.decompress(packed)
        assert_bytes packed, Zstd.compress(large)
      end
      assert_operator holds, :>, 0
      assert_equal({ calls: 2, releases: 2, holds: 0 }, counts.slice(:calls, :releases, :holds))
    end
  end

  # A held call may take about a millisecond: a high level makes even a middle-sized input too slow to hold.
  def test_slow_levels_are_not_held_for_what_a_fast_one_would_be
    bytes = text(60_000)
    Probe.beside_busy_thread do
      round_trips(100, bytes)
      assert_equal 0, counted { 3.times { Zstd.compress(bytes, level: 19) } }[:holds]
    end
  end

  # Small as inputs go, and their first output is small too: what counts is what they can become.
  def test_what_can_take_long_is_never_held_however_small_it_looks
    rle = ->(last) { (((128 << 10) << 3) | 2 | last).then { |field| [field].pack("V")[0, 3] } }
    window = [0x28, 0xB5, 0x2F, 0xFD, 0, 0x58].pack("C*")
    bomb = window + ("#{rle[0]}A".b * 1000) + rle[1] + "A".b
    Probe.beside_busy_thread do
      round_trips(100, text(1000))
      assert_equal 0, counted { Zstd.decompress(bomb) }[:holds]
      crowd = Zstd.compress("") * 100_000
      assert_equal 0, counted { Zstd.decompress(crowd) }[:holds]
      assert_equal 0, counted { Zstd.decompress("#{window}#{"\0\0\0" * 1_000_000}\1\0\0".b) }[:holds]
    end
  end

  def test_other_threads_run_while_small_calls_hold
    stop = false
    turns = 0
    counter = Thread.new { turns += 1 until stop }
    round_trips(1500, text(1000))
    stop = true
    counter.join
    assert_operator turns, :>, 1000
  end
end
