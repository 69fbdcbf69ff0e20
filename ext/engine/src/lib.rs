//! The codec under `zstd_rb`: pure Rust over libzstd, knows no Ruby. The story
//! is in the file names: [`walk`] measures an input by its [`frame`]s,
//! [`decode`] and [`encode`] work in steps that an interrupt can come between,
//! [`pool`] keeps contexts.

pub mod decode;
pub mod encode;
pub mod error;
pub mod frame;
mod libzstd;
mod pages;
pub mod params;
pub mod pool;
mod split;
pub mod walk;

pub use error::{Error, Fault};
pub use pages::set_huge_pages;

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by another thread to ask the work to come back after its current step.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// An interrupt that nobody has asked for yet.
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Asks the work to come back. Only stores a flag: it may be called from a
    /// signal handler.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is asked to come back.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a state machine came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The work is done.
    Done,
    /// It was interrupted between two steps; call again to go on.
    Interrupted,
    /// The output must have room for this many bytes in all; call again with
    /// the grown buffer.
    NeedsRoom(usize),
}

/// The version of the libzstd that is linked in, as `"1.5.7"`.
pub fn libzstd_version() -> &'static str {
    zstd_safe::version_string()
}

/// The same as one number, 10507 for 1.5.7.
pub fn libzstd_version_number() -> u32 {
    zstd_safe::version_number()
}
