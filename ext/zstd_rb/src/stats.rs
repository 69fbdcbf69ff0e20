//! Counters for users and tests: a few atomics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

static CALLS: AtomicU64 = AtomicU64::new(0);
static RELEASES: AtomicU64 = AtomicU64::new(0);
static HOLDS: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED: AtomicU64 = AtomicU64::new(0);
static WAIT_TOTAL: AtomicU64 = AtomicU64::new(0);
static WAIT_MAX: AtomicU64 = AtomicU64::new(0);

/// The counters as they are at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot {
    pub calls: u64,
    pub releases: u64,
    pub holds: u64,
    pub interrupted: u64,
    pub wait_total: Duration,
    pub wait_max: Duration,
}

pub fn snapshot() -> Snapshot {
    Snapshot {
        calls: CALLS.load(Relaxed),
        releases: RELEASES.load(Relaxed),
        holds: HOLDS.load(Relaxed),
        interrupted: INTERRUPTED.load(Relaxed),
        wait_total: Duration::from_nanos(WAIT_TOTAL.load(Relaxed)),
        wait_max: Duration::from_nanos(WAIT_MAX.load(Relaxed)),
    }
}

pub fn reset() {
    for counter in [
        &CALLS,
        &RELEASES,
        &HOLDS,
        &INTERRUPTED,
        &WAIT_TOTAL,
        &WAIT_MAX,
    ] {
        counter.store(0, Relaxed);
    }
}

/// Counts a time that work was to be done.
pub fn count_call() {
    CALLS.fetch_add(1, Relaxed);
}

/// Counts a call that kept the lock.
pub fn count_hold() {
    HOLDS.fetch_add(1, Relaxed);
}

/// Counts a release after which the lock took `wait` nanoseconds to come back.
pub fn count_release(wait: u64) {
    RELEASES.fetch_add(1, Relaxed);
    WAIT_TOTAL.fetch_add(wait, Relaxed);
    if wait > WAIT_MAX.load(Relaxed) {
        WAIT_MAX.fetch_max(wait, Relaxed);
    }
}

/// Counts a look at what was asked of a thread.
pub fn count_interrupt() {
    INTERRUPTED.fetch_add(1, Relaxed);
}
