//! The convoy guard: when not to let go of the lock.
//!
//! Beside a thread that is busy in Ruby code, each release costs a wait for
//! the lock of up to a whole time slice (100 ms); beside a thread that makes
//! calls as small as ours, it costs more than the call. So we release and
//! learn: how long the lock took to come back tells when calls that are worth
//! less than that should keep it, for a while. Then somebody tries again.
//!
//! The price of a release is a fact of the process, not of a size of call: one
//! estimate serves all. Atomics only: no lock, no Ruby, nothing to clean up.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::stats;

/// Calls of about this much work may keep the lock; longer ones never do.
const HOLD_WORK_MAX: u64 = 1_000_000;
/// Up to this much work a release must cost less than the work itself.
const SMALL_WORK: u64 = 8_000;
/// From there on it may cost this much.
const WAIT_TOLERATED: u64 = 2_000_000;
/// A wait like this is a busy thread's time slice, not an accident.
const SLICE_WAIT: u64 = 20_000_000;
/// For how many times the wait calls keep the lock: at first, and at most.
const HOLD_FACTOR_MIN: u64 = 2;
const HOLD_FACTOR_SLICE: u64 = 10;
const HOLD_FACTOR_MAX: u64 = 64;
/// The longest time without a try, in nanoseconds, unless one wait is longer.
const HOLD_MAX: u64 = 1_500_000_000;

/// What the guard has learned.
struct Guard {
    /// Whether calls may keep the lock at all.
    on: AtomicBool,
    /// How long the lock took to come back, smoothed.
    wait: AtomicU64,
    /// Until when calls worth less than `wait` keep the lock.
    hold_until: AtomicU64,
    /// For how many times the wait, next time.
    factor: AtomicU64,
    /// How many held calls have begun: a wait that one falls into tells about
    /// the guard, not about the process.
    holds_begun: AtomicU64,
}

static GUARD: Guard = Guard {
    on: AtomicBool::new(true),
    wait: AtomicU64::new(0),
    hold_until: AtomicU64::new(0),
    factor: AtomicU64::new(HOLD_FACTOR_MIN),
    holds_begun: AtomicU64::new(0),
};

/// Whether to let go of the lock for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// Let go.
    Release,
    /// Keep it.
    Hold,
}

/// Whether the guard is on.
pub fn is_on() -> bool {
    GUARD.on.load(Relaxed)
}

/// Turns the guard on or off. Off, every call lets go of the lock.
pub fn turn(on: bool) {
    GUARD.on.store(on, Relaxed);
    GUARD.forget();
}

/// Chooses for a call of about `work` nanoseconds.
pub fn choose(work: u64) -> Choice {
    let until = GUARD.hold_until.load(Relaxed);
    if until == 0 || work > HOLD_WORK_MAX || GUARD.wait.load(Relaxed) <= worth(work) {
        return Choice::Release;
    }
    if now() < until && is_on() {
        Choice::Hold
    } else {
        Choice::Release
    }
}

/// How long a wait the release of a call of this much work is worth.
fn worth(work: u64) -> u64 {
    if work <= SMALL_WORK {
        work
    } else {
        WAIT_TOLERATED
    }
}

impl Guard {
    fn forget(&self) {
        self.wait.store(0, Relaxed);
        self.hold_until.store(0, Relaxed);
        self.factor.store(HOLD_FACTOR_MIN, Relaxed);
    }

    fn learn(&self, work: u64, wait: u64) {
        if work > HOLD_WORK_MAX || !self.on.load(Relaxed) {
            return;
        }
        let before = self.wait.load(Relaxed);
        if wait <= worth(work) {
            if before != 0 && wait < before / 2 {
                self.forget();
            }
            return;
        }
        let slice = wait >= SLICE_WAIT;
        let factor = self.factor.load(Relaxed).max(if slice {
            HOLD_FACTOR_SLICE
        } else {
            HOLD_FACTOR_MIN
        });
        let hold = (wait * factor).min(HOLD_MAX.max(wait * HOLD_FACTOR_SLICE));
        self.wait.store(wait, Relaxed);
        self.factor
            .store((factor * 2).min(HOLD_FACTOR_MAX), Relaxed);
        self.hold_until.store(now() + hold, Relaxed);
    }
}

/// Nanoseconds on a clock of the process, never 0.
fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    nanos(START.elapsed()) + 1
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Notes that a call begins that keeps the lock.
pub fn begin_hold() {
    GUARD.holds_begun.fetch_add(1, Relaxed);
    stats::count_hold();
}

/// A release whose price will be known when the lock is back.
pub struct Probe {
    holds_begun: u64,
}

/// Begins a release.
pub fn begin_release() -> Probe {
    Probe {
        holds_begun: GUARD.holds_begun.load(Relaxed),
    }
}

impl Probe {
    /// Learns from a release of about `work` nanoseconds that then waited for
    /// the lock.
    pub fn end(self, work: u64, waited: Duration) {
        let wait = nanos(waited);
        stats::count_release(wait);
        if GUARD.holds_begun.load(Relaxed) == self.holds_begun {
            GUARD.learn(work, wait);
        }
    }
}
