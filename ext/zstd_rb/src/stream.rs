//! What both streams have in common: a state that one call at a time may have,
//! and what is left of it when a call fails.
//!
//! A call takes the state out and puts it back. Who finds it gone is told so at
//! once; nobody waits. In a forked child a state that another thread had taken
//! never comes back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use magnus::error::ErrorType;
use magnus::{Error, Ruby};
use zstd_engine::pool::fork_generation;

use crate::error::{busy_error, stream_error};

/// A state that a stream keeps.
pub trait State: Send {
    /// How many bytes went in and came out.
    fn totals(&self) -> (u64, u64);
    /// How much memory it holds, in bytes.
    fn memory(&mut self) -> usize;
}

enum Slot<S> {
    /// `initialize` has not run.
    Raw,
    /// Ready for a call.
    Idle(Box<S>),
    /// A call has it, in the process with this number of forks behind it.
    Taken { forks: u32, totals: (u64, u64) },
    /// A call has it, but a block of Ruby code is running meanwhile, which
    /// may never return.
    InBlock(Box<S>),
    /// A call failed: why, and the state that `reset` starts from.
    Broken { why: String, state: Box<S> },
    /// `close` has run.
    Closed((u64, u64)),
}

/// A stream's state, and its memory as the collector was told.
pub struct Stream<S: State> {
    slot: Mutex<Slot<S>>,
    memory: AtomicUsize,
}

impl<S: State> Default for Stream<S> {
    fn default() -> Self {
        Self {
            slot: Mutex::new(Slot::Raw),
            memory: AtomicUsize::new(0),
        }
    }
}

impl<S: State> Stream<S> {
    /// Looks at the slot. Nobody keeps this lock: it is never waited for.
    fn look<R>(&self, with: impl FnOnce(&mut Slot<S>) -> R) -> R {
        with(&mut self.slot.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the first state.
    pub fn initialize(&self, ruby: &Ruby, state: S) -> Result<(), Error> {
        self.look(|slot| match slot {
            Slot::Raw => {
                *slot = Slot::Idle(Box::new(state));
                Ok(())
            }
            _ => Err(stream_error(ruby, "the stream is initialized already")),
        })
    }

    /// Does a call's work. Where that fails the stream is broken.
    pub fn call<R>(
        &self,
        ruby: &Ruby,
        work: impl FnOnce(&mut S) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut state = self.take(ruby)?;
        let result = work(&mut state);
        match &result {
            Ok(_) => self.put(ruby, state),
            Err(error) => self.give_up(ruby, state, error),
        }
        result
    }

    /// Takes the state out.
    pub fn take(&self, ruby: &Ruby) -> Result<Box<S>, Error> {
        self.look(|slot| {
            let Slot::Idle(state) = slot else {
                return Err(refusal(ruby, slot));
            };
            let taken = Slot::Taken {
                forks: fork_generation(),
                totals: state.totals(),
            };
            match std::mem::replace(slot, taken) {
                Slot::Idle(state) => Ok(state),
                _ => unreachable!("it was seen to be idle"),
            }
        })
    }

    /// Puts the state back.
    pub fn put(&self, ruby: &Ruby, mut state: Box<S>) {
        self.report(ruby, state.memory());
        self.look(|slot| *slot = Slot::Idle(state));
    }

    /// Puts the state of a call that failed back, for `reset` alone.
    pub fn give_up(&self, ruby: &Ruby, mut state: Box<S>, error: &Error) {
        self.report(ruby, state.memory());
        let why = match error.error_type() {
            ErrorType::Jump(_) => "the call was left before its end".to_owned(),
            _ => error.to_string(),
        };
        self.look(|slot| *slot = Slot::Broken { why, state });
    }

    /// Runs a block while the stream is in use, but so that nothing is lost if
    /// it never returns. The state comes back in any case.
    pub fn lend<R>(
        &self,
        state: Box<S>,
        block: impl FnOnce() -> Result<R, Error>,
    ) -> (Box<S>, Result<R, Error>) {
        self.look(|slot| *slot = Slot::InBlock(state));
        let result = block();
        let state = self.look(|slot| {
            let taken = Slot::Taken {
                forks: fork_generation(),
                totals: (0, 0),
            };
            match std::mem::replace(slot, taken) {
                Slot::InBlock(state) => state,
                _ => unreachable!("nobody changes the slot of a stream in use"),
            }
        });
        (state, result)
    }

    /// Replaces the state, broken or not, by one made from it.
    pub fn reset(&self, ruby: &Ruby, renew: impl FnOnce(&S) -> S) -> Result<(), Error> {
        self.look(|slot| {
            let (Slot::Idle(state) | Slot::Broken { state, .. }) = slot else {
                return Err(refusal(ruby, slot));
            };
            let fresh = renew(state);
            *slot = Slot::Idle(Box::new(fresh));
            Ok(())
        })?;
        self.report(ruby, 0);
        Ok(())
    }

    /// Frees the state.
    pub fn close(&self, ruby: &Ruby) -> Result<(), Error> {
        self.look(|slot| {
            let totals = match slot {
                Slot::Taken { forks, totals } if *forks != fork_generation() => *totals,
                Slot::Taken { .. } | Slot::InBlock(_) => return Err(busy_error(ruby)),
                Slot::Raw => (0, 0),
                Slot::Idle(state) | Slot::Broken { state, .. } => state.totals(),
                Slot::Closed(totals) => *totals,
            };
            *slot = Slot::Closed(totals);
            Ok(())
        })?;
        self.report(ruby, 0);
        Ok(())
    }

    /// Whether `close` has run.
    pub fn is_closed(&self) -> bool {
        self.look(|slot| matches!(slot, Slot::Closed(_)))
    }

    /// What `ask` finds in a state that is not in use.
    pub fn ask<R>(&self, ruby: &Ruby, ask: impl FnOnce(&S) -> R) -> Result<R, Error> {
        self.look(|slot| match slot {
            Slot::Idle(state) | Slot::InBlock(state) | Slot::Broken { state, .. } => Ok(ask(state)),
            _ => Err(refusal(ruby, slot)),
        })
    }

    /// How many bytes went in and came out, also of a stream that is closed.
    pub fn totals(&self, ruby: &Ruby) -> Result<(u64, u64), Error> {
        self.look(|slot| match slot {
            Slot::Idle(state) | Slot::InBlock(state) | Slot::Broken { state, .. } => {
                Ok(state.totals())
            }
            Slot::Closed(totals) => Ok(*totals),
            _ => Err(refusal(ruby, slot)),
        })
    }

    /// What `ObjectSpace.memsize_of` is to know.
    pub fn memory(&self) -> usize {
        size_of::<S>() + self.memory.load(Ordering::Relaxed)
    }

    /// Tells the collector how much memory hangs on this object.
    fn report(&self, ruby: &Ruby, now: usize) {
        let before = self.memory.swap(now, Ordering::Relaxed);
        if now != before {
            ruby.gc_adjust_memory_usage(signed(now) - signed(before));
        }
    }
}

impl<S: State> Drop for Stream<S> {
    fn drop(&mut self) {
        if let Ok(ruby) = Ruby::get() {
            self.report(&ruby, 0);
        }
    }
}

fn refusal<S>(ruby: &Ruby, slot: &Slot<S>) -> Error {
    match slot {
        Slot::Raw => Error::new(ruby.exception_type_error(), "the stream is not initialized"),
        Slot::Taken { forks, .. } if *forks != fork_generation() => stream_error(
            ruby,
            "another thread was inside of the stream when the process forked; close it, and use a new one",
        ),
        Slot::Idle(_) | Slot::Taken { .. } | Slot::InBlock(_) => busy_error(ruby),
        Slot::Broken { why, .. } => stream_error(
            ruby,
            format!("the stream stopped at an earlier fault ({why}); reset begins anew"),
        ),
        Slot::Closed(_) => stream_error(ruby, "the stream is closed"),
    }
}

fn signed(bytes: usize) -> isize {
    isize::try_from(bytes).unwrap_or(isize::MAX)
}
