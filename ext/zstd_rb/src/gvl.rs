//! The only place that lets go of the GVL.
//!
//! Work leaves the lock once, walks its steps outside, and comes back. It must
//! never touch Ruby: the closures are `Send`, which keeps `Value`s out.

use std::any::Any;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use magnus::{Error, Ruby};
use zstd_engine::Interrupt;

use crate::convoy::{self, Choice};
use crate::stats;

/// `RB_NOGVL_INTR_FAIL`: come back instead of raising through our frames.
/// `RB_NOGVL_UBF_ASYNC_SAFE`: the unblock function only stores a flag; without
/// this Ruby 3.x starts a helper thread per call.
const FLAGS: u32 = rb_sys::RB_NOGVL_INTR_FAIL | rb_sys::RB_NOGVL_UBF_ASYNC_SAFE;

/// How often in a row Ruby may refuse to let go before the work is done with
/// the lock held. It refuses for good while an exception is being raised.
const REFUSALS_MAX: u32 = 64;

/// Work of about this many nanoseconds is over before anybody gets impatient.
const SHORT: u64 = 1_000_000;

/// Runs `work` without the GVL, or with it where the convoy guard says so.
///
/// `nanos` is about how long the work takes. The work looks at the interrupt
/// it is given after each step and comes back when it is asked to; the caller
/// then calls [`check_interrupts`], and calls again to go on.
pub fn without<F, R>(ruby: &Ruby, nanos: u64, work: F) -> Result<R, Error>
where
    F: FnOnce(&Asked) -> R + Send,
    R: Send,
{
    stats::count_call();
    if convoy::choose(nanos) == Choice::Hold {
        return Ok(hold(work));
    }
    let mut work = work;
    for _ in 0..REFUSALS_MAX {
        match release(nanos, work) {
            Ok(result) => return Ok(result),
            Err(refused) => work = refused,
        }
        check_interrupts(ruby)?;
    }
    Ok(hold(work))
}

/// Delivers what was asked of this thread: exceptions, its end, signals.
pub fn check_interrupts(ruby: &Ruby) -> Result<(), Error> {
    stats::count_interrupt();
    ruby.thread_check_ints()
}

/// What was asked of the thread that works.
pub struct Asked {
    flag: AtomicBool,
    /// Up to Ruby 3.2 a signal reaches a main thread that was not alone when it
    /// let go of the lock only through the others; once they have ended nobody
    /// calls `unblock` any more. So the thread is asked itself.
    #[cfg(ruby_lt_3_3)]
    thread: Option<rb_sys::VALUE>,
}

impl Asked {
    const fn nothing() -> Self {
        Self {
            flag: AtomicBool::new(false),
            #[cfg(ruby_lt_3_3)]
            thread: None,
        }
    }

    fn of_this_thread() -> Self {
        Self {
            #[cfg(ruby_lt_3_3)]
            // SAFETY: called with the GVL, by a thread of Ruby's.
            thread: Some(unsafe { rb_sys::rb_thread_current() }),
            ..Self::nothing()
        }
    }
}

impl Interrupt for Asked {
    fn is_asked(&self) -> bool {
        #[cfg(ruby_lt_3_3)]
        if let Some(thread) = self.thread {
            // SAFETY: `thread` is the one that runs this, so it is alive. The
            // function reads its flags under its interrupt lock, and needs no
            // GVL.
            if unsafe { rb_sys::rb_thread_interrupted(thread) } != 0 {
                return true;
            }
        }
        self.flag.load(Ordering::Relaxed)
    }
}

fn hold<F, R>(work: F) -> R
where
    F: FnOnce(&Asked) -> R,
{
    convoy::begin_hold();
    work(&Asked::nothing())
}

/// What crosses into the released region and back.
struct Region<F, R> {
    work: Option<F>,
    asked: Asked,
    result: Option<Result<R, Box<dyn Any + Send>>>,
    /// When the work began and ended.
    span: Option<(Instant, Instant)>,
}

/// Lets go of the lock once. Gives the work back if Ruby refused because of an
/// interrupt that was already there.
fn release<F, R>(nanos: u64, work: F) -> Result<R, F>
where
    F: FnOnce(&Asked) -> R + Send,
    R: Send,
{
    let mut region = Region {
        work: Some(work),
        asked: if nanos > SHORT {
            Asked::of_this_thread()
        } else {
            Asked::nothing()
        },
        result: None,
        span: None,
    };
    let probe = convoy::begin_release();
    let data: *mut Region<F, R> = &raw mut region;
    // SAFETY: with these flags rb_nogvl neither raises nor runs Ruby code, and
    // returns before `region` ends. `run` is called at most once with `data`;
    // `unblock` gets a pointer to the flag alone, an atomic.
    unsafe {
        rb_sys::rb_nogvl(
            Some(run::<F, R>),
            data.cast::<c_void>(),
            Some(unblock),
            (&raw mut (*data).asked.flag).cast::<c_void>(),
            c_int::from_ne_bytes(FLAGS.to_ne_bytes()),
        );
    }
    match (region.result, region.work, region.span) {
        (Some(result), _, Some((began, ended))) => {
            probe.end(nanos, began, ended);
            Ok(result.unwrap_or_else(|panic| resume_unwind(panic)))
        }
        (_, Some(work), _) => Err(work),
        _ => unreachable!("the region either ran its work or still has it"),
    }
}

/// Called by Ruby without the GVL.
unsafe extern "C" fn run<F, R>(data: *mut c_void) -> *mut c_void
where
    F: FnOnce(&Asked) -> R + Send,
    R: Send,
{
    let region = data.cast::<Region<F, R>>();
    // SAFETY: `data` is the region of the `release` that waits for us. Other
    // threads only ever see its flag, through `unblock`, so the parts are
    // borrowed one by one and never the whole.
    let (work, asked, result, span) = unsafe {
        (
            &mut (*region).work,
            &(*region).asked,
            &mut (*region).result,
            &mut (*region).span,
        )
    };
    convoy::note_lock_free();
    if let Some(work) = work.take() {
        let began = Instant::now();
        // A panic must not unwind into Ruby's C frames. Nothing of the work is
        // used after one: it goes on unwinding in `release`.
        *result = Some(catch_unwind(AssertUnwindSafe(|| work(asked))));
        *span = Some((began, Instant::now()));
    }
    convoy::await_peer();
    ptr::null_mut()
}

/// Called by Ruby with the target's interrupt lock held, perhaps in a signal
/// handler, perhaps more than once, perhaps before `run`.
unsafe extern "C" fn unblock(data: *mut c_void) {
    // SAFETY: `data` is the flag of a region that has not ended: Ruby clears
    // the unblock function, under the same lock, before rb_nogvl returns.
    unsafe { &*data.cast::<AtomicBool>() }.store(true, Ordering::Relaxed);
}

/// Lets Ractors call this extension: it keeps no state but atomics.
pub fn declare_ractor_safe() {
    // SAFETY: called from the extension's init function, as it must be.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
}
