//! The codec under `zstd_rb`: pure Rust over libzstd, knows no Ruby. The story
//! is in the file names: [`walk`] measures an input by its [`frame`]s,
//! [`decode`] and [`encode`] work in steps that an interrupt can come between,
//! [`stream_decode`] and [`stream_encode`] do so on input that comes in pieces,
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
pub mod stream_decode;
pub mod stream_encode;
pub mod walk;

pub use error::{Error, Fault};
pub use pages::set_huge_pages;

/// Asks the work to come back after its current step.
///
/// The work looks after each step, so an answer must be cheap and must not
/// wait.
pub trait Interrupt {
    /// Whether the work is asked to come back.
    fn is_asked(&self) -> bool;
}

/// For work that nothing interrupts.
#[derive(Debug, Clone, Copy)]
pub struct Never;

impl Interrupt for Never {
    fn is_asked(&self) -> bool {
        false
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
