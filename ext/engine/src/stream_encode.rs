//! Encoding of content that comes in pieces: a frame that grows, block by
//! block. Knows how much of it libzstd still holds back.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use zstd_sys::{ZSTD_EndDirective, ZSTD_cParameter, ZSTD_inBuffer, ZSTD_outBuffer};

use crate::error::Error;
use crate::frame::BLOCK_SIZE_MAX;
use crate::libzstd::Failure;
use crate::params::{CompressParams, compress_bound};
use crate::pool::CompressContext;
use crate::{Interrupt, Progress};

/// What is asked for, besides taking the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Nothing: output comes as blocks get full.
    Continue,
    /// All that was given can be decoded from the output so far.
    Flush,
    /// The frame is whole.
    End,
}

/// The state of one frame that is being made.
pub struct EncodeStream {
    params: CompressParams,
    pledged: Option<u64>,
    context: Option<CompressContext>,
    /// The beginning of the content, until it is a block or something is asked
    /// for: content that ends before is compressed as what it is, small, with
    /// tables of its size and its size in the header.
    head: Vec<u8>,
    head_pos: usize,
    begun: bool,
    ended: bool,
    /// How much content libzstd has taken since its last flush.
    owed: usize,
    total_in: u64,
    total_out: u64,
}

impl EncodeStream {
    /// A frame that has not begun, of `pledged` bytes if that is known.
    pub fn new(params: CompressParams, pledged: Option<u64>) -> Self {
        Self {
            params,
            pledged,
            context: None,
            head: Vec::new(),
            head_pos: 0,
            begun: false,
            ended: false,
            owed: 0,
            total_in: 0,
            total_out: 0,
        }
    }

    /// The parameters of the frame.
    pub fn params(&self) -> CompressParams {
        self.params
    }

    /// How many bytes of content were taken.
    pub fn total_in(&self) -> u64 {
        self.total_in
    }

    /// How many bytes of output were made.
    pub fn total_out(&self) -> u64 {
        self.total_out
    }

    /// Whether the frame is whole.
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// How much memory the frame holds, in bytes.
    pub fn memory(&mut self) -> usize {
        self.head.capacity() + self.context.as_mut().map_or(0, CompressContext::size)
    }

    /// How many bytes may have to be compressed to reach `goal` with `len`
    /// bytes more: what an estimate of the time starts from.
    pub fn work(&self, len: usize, goal: Goal) -> usize {
        let held = self.head.len() - self.head_pos + self.owed % BLOCK_SIZE_MAX;
        let all = held.saturating_add(len);
        if goal == Goal::Continue && all < BLOCK_SIZE_MAX {
            0
        } else {
            all
        }
    }

    /// How much room the output should have for that.
    pub fn room(&self, len: usize, goal: Goal) -> usize {
        const HEADER_AND_CHECKSUM: usize = 18 + 4;
        match self.work(len, goal) {
            0 if goal == Goal::Continue => 0,
            work => compress_bound(work).unwrap_or(work) + HEADER_AND_CHECKSUM,
        }
    }

    /// Takes `input` from `used` on, and appends what comes out to `out`, of
    /// which `written` bytes are taken already. Moves both forward.
    ///
    /// At least one step is taken; then the interrupt is looked at after each.
    pub fn run(
        &mut self,
        input: &[u8],
        used: &mut usize,
        goal: Goal,
        out: &mut [MaybeUninit<u8>],
        written: &mut usize,
        interrupt: &impl Interrupt,
    ) -> Result<Progress, Error> {
        self.check_pledge(input.len() - *used, goal)?;
        if self.ended {
            return Ok(Progress::Done);
        }
        if !self.begun
            && goal == Goal::Continue
            && self.head.len() + input.len() - *used < BLOCK_SIZE_MAX
        {
            self.head.extend_from_slice(&input[*used..]);
            self.total_in += (input.len() - *used) as u64;
            *used = input.len();
            return Ok(Progress::Done);
        }
        loop {
            if let Some(progress) = self.step(input, used, goal, out, written)? {
                return Ok(progress);
            }
            if interrupt.is_asked() {
                return Ok(Progress::Interrupted);
            }
        }
    }

    fn check_pledge(&self, more: usize, goal: Goal) -> Result<(), Error> {
        let given = self.total_in + more as u64;
        match self.pledged {
            Some(pledged) if given > pledged || (goal == Goal::End && given < pledged) => {
                Err(Error::PledgedSize { pledged, given })
            }
            _ => Ok(()),
        }
    }

    /// One call of libzstd, with at most one block of content.
    fn step(
        &mut self,
        input: &[u8],
        used: &mut usize,
        goal: Goal,
        out: &mut [MaybeUninit<u8>],
        written: &mut usize,
    ) -> Result<Option<Progress>, Error> {
        let from_head = self.head_pos < self.head.len();
        let pending = if from_head {
            &self.head[self.head_pos..]
        } else {
            &input[*used..]
        };
        let piece = &pending[..pending.len().min(BLOCK_SIZE_MAX)];
        let is_last = piece.len() == pending.len() && (!from_head || *used == input.len());
        if is_last && piece.is_empty() && goal == Goal::Continue {
            return Ok(Some(Progress::Done));
        }
        if *written == out.len() {
            return Ok(Some(Progress::NeedsRoom(out.len() + 1)));
        }
        let end = match goal {
            Goal::Flush if is_last => ZSTD_EndDirective::ZSTD_e_flush,
            Goal::End if is_last => ZSTD_EndDirective::ZSTD_e_end,
            _ => ZSTD_EndDirective::ZSTD_e_continue,
        };
        let Some(context) = &mut self.context else {
            self.context = Some(self.begin()?);
            self.begun = true;
            return Ok(None);
        };
        let mut source = ZSTD_inBuffer {
            src: piece.as_ptr().cast::<c_void>(),
            size: piece.len(),
            pos: 0,
        };
        let mut sink = ZSTD_outBuffer {
            dst: out.as_mut_ptr().cast::<c_void>(),
            size: out.len(),
            pos: *written,
        };
        // SAFETY: both buffers describe live slices that cannot overlap, and
        // the context is this thread's alone. Without the stable modes libzstd
        // keeps no pointer into either.
        let ret = unsafe {
            zstd_sys::ZSTD_compressStream2(context.as_ptr(), &raw mut sink, &raw mut source, end)
        };
        let left = Failure::check(ret).map_err(Failure::while_encoding)?;
        self.total_out += (sink.pos - *written) as u64;
        *written = sink.pos;
        self.owed += source.pos;
        if from_head {
            self.head_pos += source.pos;
            if self.head_pos == self.head.len() {
                self.head = Vec::new();
                self.head_pos = 0;
            }
        } else {
            *used += source.pos;
            self.total_in += source.pos as u64;
        }
        if end == ZSTD_EndDirective::ZSTD_e_continue || left > 0 {
            return Ok(None);
        }
        self.owed = 0;
        if end == ZSTD_EndDirective::ZSTD_e_end {
            self.ended = true;
            if let Some(context) = self.context.take() {
                context.give_back();
            }
        }
        Ok(Some(Progress::Done))
    }

    fn begin(&self) -> Result<CompressContext, Error> {
        let mut context = CompressContext::take()?;
        self.configure(&mut context)
            .map_err(Failure::while_encoding)?;
        Ok(context)
    }

    fn configure(&self, context: &mut CompressContext) -> Result<(), Failure> {
        context.set(
            ZSTD_cParameter::ZSTD_c_compressionLevel,
            self.params.level(),
        )?;
        if self.params.checksum {
            context.set(ZSTD_cParameter::ZSTD_c_checksumFlag, 1)?;
        }
        if let Some(pledged) = self.pledged {
            // SAFETY: the context is live and this thread's alone.
            let ret = unsafe { zstd_sys::ZSTD_CCtx_setPledgedSrcSize(context.as_ptr(), pledged) };
            Failure::check(ret)?;
        }
        Ok(())
    }
}
