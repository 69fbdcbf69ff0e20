//! One-shot decoding: a state machine that walks the frames of an input and
//! decodes straight into the final buffer, one block per step. It can be
//! interrupted between steps, and asks for a larger buffer where only bounds
//! of the size are known.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use zstd_sys::{ZSTD_dParameter, ZSTD_inBuffer, ZSTD_outBuffer};

use crate::error::Error;
use crate::frame::BLOCK_SIZE_MAX;
use crate::libzstd::Failure;
use crate::pages::Ahead;
use crate::params::{DecompressLimits, estimated_decode_nanos};
use crate::pool::{FrameContext, StepContext};
use crate::walk::{FrameWalk, Span, Totals, Walked};
use crate::{Interrupt, Progress};

/// Frames up to this size are decoded by a single call: about a millisecond.
const SINGLE_CALL_MAX: u64 = 1 << 20;
/// The least that an output of unknown size starts with.
const START_CAPACITY: usize = 1 << 20;
/// Honest data rarely shrinks more than this: an output of unknown size that
/// fits in this multiple of its input gets its upper bound at once. Pages that
/// are never written cost nothing.
const START_RATIO: usize = 16;
/// How many block headers are read between two looks at the interrupt.
const WALK_BUDGET: usize = 4096;

/// How large the output must be, decided before anything is allocated.
#[derive(Debug, Clone)]
pub struct Plan {
    totals: Totals,
    limits: DecompressLimits,
    /// What to allocate first, in bytes.
    pub capacity: usize,
    /// The most that the output can grow to.
    ceiling: usize,
}

impl Plan {
    /// Plans the output of an input of `input_len` bytes that was walked whole.
    pub fn new(input_len: usize, totals: Totals, limits: DecompressLimits) -> Result<Self, Error> {
        let ceiling = match limits.max_output_size {
            // One block more than the limit: going over it is then seen.
            Some(limit) => totals
                .bound
                .min(limit.saturating_add(BLOCK_SIZE_MAX as u64)),
            None => totals.bound,
        };
        let ceiling = usize::try_from(ceiling)
            .ok()
            .filter(|ceiling| isize::try_from(*ceiling).is_ok())
            .ok_or(Error::Memory {
                what: "an output that is larger than the address space",
            })?;
        let capacity = if totals.has_unknown_size {
            let start = input_len.saturating_mul(START_RATIO).max(START_CAPACITY);
            ceiling.min(start)
        } else {
            ceiling
        };
        Ok(Self {
            totals,
            limits,
            capacity,
            ceiling,
        })
    }

    /// About how long decoding takes at most, in nanoseconds, for an input of
    /// `input_len` bytes.
    pub fn estimated_nanos(&self, input_len: usize) -> u64 {
        estimated_decode_nanos(input_len, self.ceiling as u64, self.totals.blocks)
    }

    /// Whether `capacity` is the exact size of the output of honest data.
    pub fn is_exact(&self) -> bool {
        !self.totals.has_unknown_size
    }

    /// The capacity to grow to so that at least `needed` bytes fit.
    pub fn grown(&self, capacity: usize, needed: usize) -> usize {
        capacity.saturating_mul(2).min(self.ceiling).max(needed)
    }
}

/// A frame that is being decoded in steps.
struct Stepped {
    span: Span,
    /// Up to where the input was consumed.
    fed: usize,
    /// How many bytes libzstd wants next.
    wanted: usize,
    /// The end of the frame's part of the output, where that is fixed: then
    /// libzstd writes there directly. Otherwise it keeps its own window, and
    /// the output may move between steps.
    out_end: Option<usize>,
    ahead: Ahead,
}

/// The state of one decompression.
pub struct Decoder<'i> {
    input: &'i [u8],
    plan: Plan,
    pos: usize,
    produced: usize,
    walk: Option<FrameWalk>,
    stepped: Option<Stepped>,
    frame_context: Option<FrameContext>,
    step_context: Option<StepContext>,
}

impl<'i> Decoder<'i> {
    /// A decoder that stands before the first frame of `input`.
    pub fn new(input: &'i [u8], plan: Plan) -> Self {
        Self {
            input,
            plan,
            pos: 0,
            produced: 0,
            walk: None,
            stepped: None,
            frame_context: None,
            step_context: None,
        }
    }

    /// How many bytes of output there are so far.
    pub fn produced(&self) -> usize {
        self.produced
    }

    /// The capacity to grow an output of `capacity` bytes to, so that at least
    /// `needed` bytes fit.
    pub fn grown(&self, capacity: usize, needed: usize) -> usize {
        self.plan.grown(capacity, needed)
    }

    /// Decodes on into `out`, which holds the output so far and is the same
    /// memory as in the last call, unless that asked for room.
    ///
    /// At least one step is taken; then the interrupt is looked at after each.
    pub fn run(
        &mut self,
        out: &mut [MaybeUninit<u8>],
        interrupt: &impl Interrupt,
    ) -> Result<Progress, Error> {
        loop {
            let paused = if let Some(stepped) = self.stepped.take() {
                self.step(stepped, out)?
            } else if self.pos == self.input.len() {
                if let Some(context) = self.frame_context.take() {
                    context.give_back();
                }
                return Ok(Progress::Done);
            } else if let Some(span) = self.next_span()? {
                self.begin(span, out)?
            } else {
                None
            };
            if let Some(needed) = paused {
                return Ok(Progress::NeedsRoom(needed));
            }
            if !self.is_done() && interrupt.is_asked() {
                return Ok(Progress::Interrupted);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.stepped.is_none() && self.pos == self.input.len()
    }

    /// Measures the next frame; `None` when it has so many blocks that the
    /// interrupt should be looked at first.
    fn next_span(&mut self) -> Result<Option<Span>, Error> {
        if self.pos == 0 && self.plan.totals.frames == 1 {
            return Ok(self.plan.totals.first);
        }
        let mut walk = match self.walk.take() {
            Some(walk) => walk,
            None => match FrameWalk::begin(self.input, self.pos, &self.plan.limits)? {
                Ok(walk) => walk,
                Err(skippable) => return Ok(Some(skippable)),
            },
        };
        match walk.step(self.input, &mut WALK_BUDGET.clone())? {
            Walked::Frame(span) => Ok(Some(span)),
            Walked::Paused => {
                self.walk = Some(walk);
                Ok(None)
            }
        }
    }

    /// Chooses how to decode a frame, and takes its first step. Returns how
    /// much room is missing, if it is.
    fn begin(&mut self, span: Span, out: &mut [MaybeUninit<u8>]) -> Result<Option<usize>, Error> {
        if span.header.is_none() {
            self.pos = span.end;
            return Ok(None);
        }
        let out_end = usize::try_from(span.bound)
            .ok()
            .and_then(|bound| self.produced.checked_add(bound));
        let fits = out_end.is_some_and(|end| end <= out.len());
        if !fits && span.content_size().is_some() {
            let needed = out_end.unwrap_or(usize::MAX);
            if needed > self.plan.ceiling {
                return Err(self.over_limit());
            }
            // The frame is measured again after the growth: nanoseconds.
            return Ok(Some(needed));
        }
        let length = (span.end - span.start) as u64;
        if fits
            && span.bound <= SINGLE_CALL_MAX
            && length <= 2 * SINGLE_CALL_MAX
            && !span.has_odd_block
        {
            self.decode_whole(&span, &mut out[self.produced..])?;
            return Ok(None);
        }
        let stepped = self.start_stepping(span, out_end.filter(|_| fits))?;
        self.step(stepped, out)
    }

    /// Decodes a small frame by a single call.
    fn decode_whole(&mut self, span: &Span, out: &mut [MaybeUninit<u8>]) -> Result<(), Error> {
        let context = match &mut self.frame_context {
            Some(context) => context,
            empty => empty.insert(FrameContext::take()?),
        };
        // `begin` has checked that the bound fits.
        let bound = usize::try_from(span.bound).unwrap_or(0);
        let out = &mut out[..bound];
        let frame = &self.input[span.start..span.end];
        // SAFETY: the pointers and lengths are those of two live slices, which
        // cannot overlap; the context is this thread's alone. libzstd writes
        // only inside `out`.
        let ret = unsafe {
            zstd_sys::ZSTD_decompressDCtx(
                context.as_ptr(),
                out.as_mut_ptr().cast::<c_void>(),
                out.len(),
                frame.as_ptr().cast::<c_void>(),
                frame.len(),
            )
        };
        let size = Failure::check(ret).map_err(|failure| failure.while_decoding(span.start))?;
        self.pos = span.end;
        self.produced += size;
        self.check_limit()
    }

    fn start_stepping(&mut self, span: Span, out_end: Option<usize>) -> Result<Stepped, Error> {
        // ZSTD_d_stableOutBuffer of zstd.h, under the name of its number.
        const STABLE_OUT_BUFFER: ZSTD_dParameter = ZSTD_dParameter::ZSTD_d_experimentalParam2;
        let context = match &mut self.step_context {
            Some(context) => context,
            empty => {
                let mut context = StepContext::new()?;
                // The walk has held the window against the caller's limit.
                context
                    .set(
                        ZSTD_dParameter::ZSTD_d_windowLogMax,
                        DecompressLimits::WINDOW_LOG_MAX,
                    )
                    .map_err(|failure| failure.while_decoding(span.start))?;
                empty.insert(context)
            }
        };
        context
            .set(STABLE_OUT_BUFFER, i32::from(out_end.is_some()))
            .map_err(|failure| failure.while_decoding(span.start))?;
        Ok(Stepped {
            fed: span.start,
            // The header alone: with the whole frame at hand libzstd would
            // decode it in one call.
            wanted: span.header.map_or(0, |header| header.size),
            span,
            out_end,
            ahead: Ahead::default(),
        })
    }

    /// Takes one step of a frame: feeds exactly the bytes that libzstd asks
    /// for, which is one block. Returns how much room is missing, if it is.
    fn step(
        &mut self,
        mut stepped: Stepped,
        out: &mut [MaybeUninit<u8>],
    ) -> Result<Option<usize>, Error> {
        let frame = stepped.span.start;
        let end = match stepped.out_end {
            Some(end) => end,
            None => out.len().min(self.produced + BLOCK_SIZE_MAX),
        };
        let out_now = &mut out[..end];
        if stepped.out_end.is_some() && stepped.span.content_size().is_some() {
            stepped.ahead.reach(out_now, self.produced);
        }
        let fed_end = stepped.span.end.min(stepped.fed + stepped.wanted);
        let piece = &self.input[stepped.fed..fed_end];
        let Some(context) = &mut self.step_context else {
            unreachable!("a frame is stepped only after its context was made")
        };
        let mut source = ZSTD_inBuffer {
            src: piece.as_ptr().cast::<c_void>(),
            size: piece.len(),
            pos: 0,
        };
        let mut sink = ZSTD_outBuffer {
            dst: out_now.as_mut_ptr().cast::<c_void>(),
            size: out_now.len(),
            pos: self.produced,
        };
        // SAFETY: both buffers describe live slices that cannot overlap, and
        // the context is this thread's alone. In the stable mode the buffer is
        // the one of the step before (the contract of `run`); libzstd checks
        // its address, and reads back no more than it wrote in this frame.
        let ret = unsafe {
            zstd_sys::ZSTD_decompressStream(context.as_ptr(), &raw mut sink, &raw mut source)
        };
        let wanted = Failure::check(ret).map_err(|failure| failure.while_decoding(frame))?;
        let stuck = source.pos == 0 && sink.pos == self.produced;
        stepped.fed += source.pos;
        stepped.wanted = wanted;
        self.produced = sink.pos;
        self.check_limit()?;
        if wanted == 0 {
            return self.end_stepping(&stepped).map(|()| None);
        }
        if stuck {
            return self.find_room(stepped, out.len()).map(Some);
        }
        self.stepped = Some(stepped);
        Ok(None)
    }

    fn end_stepping(&mut self, stepped: &Stepped) -> Result<(), Error> {
        if stepped.fed != stepped.span.end {
            return Err(Error::corrupted(
                stepped.span.start,
                format!("ends at byte {}, inside its own blocks", stepped.fed),
            ));
        }
        // libzstd does not look when the last block is empty. A frame whose
        // size is known always has its own part of the output.
        let declares_more = stepped.span.content_size().is_some()
            && stepped.out_end.is_some_and(|end| end != self.produced);
        if declares_more {
            return Err(Error::holds_less(stepped.span.start));
        }
        self.pos = stepped.span.end;
        Ok(())
    }

    /// A step that moved nothing: the output is full.
    fn find_room(&mut self, stepped: Stepped, capacity: usize) -> Result<usize, Error> {
        if capacity >= self.plan.ceiling || stepped.out_end.is_some() {
            // More than the walk's bound, or a frame that wants more input
            // than it has: neither can be.
            return Err(Error::corrupted(
                stepped.span.start,
                "does not decode: no progress",
            ));
        }
        self.stepped = Some(stepped);
        Ok(capacity + 1)
    }

    fn check_limit(&self) -> Result<(), Error> {
        match self.plan.limits.max_output_size {
            Some(limit) if self.produced as u64 > limit => Err(self.over_limit()),
            _ => Ok(()),
        }
    }

    fn over_limit(&self) -> Error {
        Error::OutputOverLimit {
            limit: self.plan.limits.max_output_size.unwrap_or(u64::MAX),
        }
    }
}
