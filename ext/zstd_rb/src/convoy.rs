//! The convoy guard: when not to let go of the lock.
//!
//! Beside a thread that is busy in Ruby code, each release costs a wait for
//! the lock of up to a whole time slice (100 ms); beside a thread that makes
//! calls as small as ours, it costs more than the call. So we release and keep
//! an account: a release is worth the work that others could do meanwhile, and
//! costs the wait for the lock afterwards. While an account is overdrawn, calls
//! of its size keep the lock for a while; then one tries again.
//!
//! Atomics only: no lock, no Ruby, nothing to clean up. Two threads may learn
//! at once and lose an entry of the account: it is an estimate.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::stats;

/// A lock that nobody else wanted is back within this time.
const FREE_WAIT: u64 = 1_000;
/// What waking the thread that did want it costs besides the wait.
const HANDOVER: u64 = 3_000;
/// A wait like this is a busy thread's time slice (or a long collection), not
/// the usual to and fro of threads.
const SLICE_WAIT: u64 = 20_000_000;
/// For how many times such a wait calls keep the lock; once, where it is the
/// first for some time and may have been an accident.
const SLICE_FACTOR: u64 = 10;
/// Two such waits in so short a time are no accident. Good waits between them
/// prove nothing: Ruby 3.1 often gives the lock back before a busy thread has
/// noticed that it was free.
const SLICE_MEMORY: u64 = 4_000_000_000;
/// For how many times its debt an overdrawn account keeps the lock: at first,
/// and at most, after doubling each time that it is overdrawn again at once.
const DEBT_FACTOR_MIN: u64 = 4;
const DEBT_FACTOR_MAX: u64 = 64;
/// The longest time without a try.
const HOLD_MAX: u64 = 3_000_000_000;

/// The account of calls of about one size.
struct Account {
    /// The most work that one call of this account takes.
    work_max: u64,
    /// How much past gain can make up for a wait.
    savings_max: i64,
    /// How much loss is too much.
    debt_max: i64,
    /// What releases have gained, less what they cost.
    balance: AtomicI64,
    /// Until when calls keep the lock; 0 when nothing speaks against a release.
    hold_until: AtomicU64,
    /// For how many times the debt, next time.
    factor: AtomicU64,
}

impl Account {
    const fn new(work_max: u64, savings_max: i64, debt_max: i64) -> Self {
        Self {
            work_max,
            savings_max,
            debt_max,
            balance: AtomicI64::new(0),
            hold_until: AtomicU64::new(0),
            factor: AtomicU64::new(DEBT_FACTOR_MIN),
        }
    }
}

/// In nanoseconds. Calls of more work than the last one's never hold.
static ACCOUNTS: [Account; 3] = [
    Account::new(4_000, 200_000, 30_000),
    Account::new(32_000, 2_000_000, 300_000),
    Account::new(1_000_000, 5_000_000, 2_000_000),
];

static ON: AtomicBool = AtomicBool::new(true);

/// How many held calls have begun. A wait that one falls into tells about the
/// guard, not about the process: it must not feed itself.
static HOLDS_BEGUN: AtomicU64 = AtomicU64::new(0);

/// When a wait was last a time slice; 0 for never.
static LAST_SLICE: AtomicU64 = AtomicU64::new(0);

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
    ON.load(Relaxed)
}

/// Turns the guard on or off, and forgets what it has learned. Off, every call
/// lets go of the lock.
pub fn turn(on: bool) {
    ON.store(on, Relaxed);
    LAST_SLICE.store(0, Relaxed);
    for account in &ACCOUNTS {
        account.forget();
    }
}

/// Chooses for a call of about `work` nanoseconds.
pub fn choose(work: u64) -> Choice {
    match account_of(work) {
        Some(account) if account.holds() => Choice::Hold,
        _ => Choice::Release,
    }
}

/// Notes that a call begins that keeps the lock.
pub fn begin_hold() {
    HOLDS_BEGUN.fetch_add(1, Relaxed);
    stats::count_hold();
}

/// A release whose price will be known when the lock is back.
pub struct Probe {
    holds_begun: u64,
}

/// When a call of ours last got the lock back; 0 when it has let go since.
static LOCK_TAKEN: AtomicU64 = AtomicU64::new(0);

/// For how long to expect a thread that has just got the lock back to let go
/// of it again.
const PATIENCE: u64 = 4_000;

/// Called without the lock when the work begins: the lock is free.
pub fn note_lock_free() {
    LOCK_TAKEN.store(0, Relaxed);
}

/// Called without the lock when the work is done. Where another call has just
/// taken the lock, its thread is probably about to let go of it for the next:
/// a moment's patience is cheaper for both than to sleep and be woken.
pub fn await_peer() {
    let taken = LOCK_TAKEN.load(Relaxed);
    if taken == 0 {
        return;
    }
    while LOCK_TAKEN.load(Relaxed) == taken && now().saturating_sub(taken) < PATIENCE {
        std::hint::spin_loop();
    }
}

/// Begins a release.
pub fn begin_release() -> Probe {
    Probe {
        holds_begun: HOLDS_BEGUN.load(Relaxed),
    }
}

impl Probe {
    /// Learns from a release for work that was thought to take `estimated`
    /// nanoseconds, began and ended at these times, and then waited for the
    /// lock until now.
    pub fn end(self, estimated: u64, began: Instant, ended: Instant) {
        let back = Instant::now();
        LOCK_TAKEN.store(clock(back), Relaxed);
        let wait = nanos(back - ended);
        stats::count_release(wait);
        if HOLDS_BEGUN.load(Relaxed) == self.holds_begun && is_on() {
            if let Some(account) = account_of(estimated) {
                learn(account, nanos(ended - began), wait);
            }
        }
    }
}

fn account_of(work: u64) -> Option<&'static Account> {
    ACCOUNTS.iter().find(|account| work <= account.work_max)
}

fn learn(account: &Account, work: u64, wait: u64) {
    if wait < SLICE_WAIT {
        let handover = if wait > FREE_WAIT { HANDOVER } else { 0 };
        account.enter(signed(work) - signed(wait + handover));
        return;
    }
    let now = now();
    let last = LAST_SLICE.swap(now, Relaxed);
    let again = last != 0 && now - last.min(now) < SLICE_MEMORY;
    let factor = if again { SLICE_FACTOR } else { 1 };
    let until = now + wait.saturating_mul(factor).min(HOLD_MAX);
    // A busy thread is a fact of the process: it costs all the same.
    for account in &ACCOUNTS {
        account.hold_until.store(until, Relaxed);
    }
}

impl Account {
    fn holds(&self) -> bool {
        let until = self.hold_until.load(Relaxed);
        until != 0 && now() < until
    }

    fn enter(&self, gain: i64) {
        let balance = self.balance.load(Relaxed).saturating_add(gain);
        if balance >= -self.debt_max {
            if balance > 0 && self.hold_until.load(Relaxed) != 0 {
                self.forget();
            }
            self.balance.store(balance.min(self.savings_max), Relaxed);
            return;
        }
        let factor = self.factor.load(Relaxed);
        let hold = balance.unsigned_abs().saturating_mul(factor).min(HOLD_MAX);
        self.factor
            .store((factor * 2).min(DEBT_FACTOR_MAX), Relaxed);
        // Half the debt stays, so that the next try ends sooner if nothing has
        // changed.
        self.balance.store(-self.debt_max / 2, Relaxed);
        self.hold_until.store(now() + hold, Relaxed);
    }

    fn forget(&self) {
        self.balance.store(0, Relaxed);
        self.hold_until.store(0, Relaxed);
        self.factor.store(DEBT_FACTOR_MIN, Relaxed);
    }
}

fn now() -> u64 {
    clock(Instant::now())
}

/// A time as nanoseconds on a clock of the process, never 0.
fn clock(time: Instant) -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    nanos(time.saturating_duration_since(*START)) + 1
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
