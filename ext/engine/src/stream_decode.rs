//! Decoding of input that comes in pieces: all frames in order, each block
//! given out as soon as it can be decoded. Reads frame headers itself, so that
//! faults have the same names as in [`crate::decode`], and before libzstd
//! allocates anything.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use zstd_sys::{ZSTD_dParameter, ZSTD_inBuffer, ZSTD_outBuffer};

use crate::error::Error;
use crate::frame::{BLOCK_SIZE_MAX, DataHeader, Header, header};
use crate::libzstd::Failure;
use crate::params::DecompressLimits;
use crate::pool::StepContext;
use crate::{Interrupt, Progress};

/// The longest frame header (RFC 8878, 3.1.1.1).
const HEADER_SIZE_MAX: usize = 18;

/// Where the input stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Between frames, or inside a header.
    Header,
    /// Inside a frame: how many bytes libzstd wants for the next block, and
    /// how much content is still to come, where the header tells.
    Content { wanted: usize, left: Option<u64> },
    /// Inside a skippable frame with so many bytes to go.
    Skipping(u64),
    /// After all that is decoded here.
    End,
}

/// What one step did.
enum Step {
    /// Took so many bytes of input.
    Took(usize),
    /// Nothing, for want of input.
    Starved,
    /// Nothing, for want of room.
    Full,
}

/// The state of one stream of frames.
pub struct DecodeStream {
    limits: DecompressLimits,
    single_frame: bool,
    context: Option<StepContext>,
    place: Place,
    head: [u8; HEADER_SIZE_MAX],
    head_len: usize,
    /// Input that was given but not wanted yet.
    kept: Vec<u8>,
    kept_pos: usize,
    /// Whether libzstd may have output that found no room.
    may_hold_output: bool,
    frames: u64,
    frame_start: u64,
    total_in: u64,
    total_out: u64,
    fault: Option<Error>,
}

impl DecodeStream {
    /// A stream that stands before its first frame, and ends after the first
    /// one with content if `single_frame`.
    pub fn new(limits: DecompressLimits, single_frame: bool) -> Self {
        Self {
            limits,
            single_frame,
            context: None,
            place: Place::Header,
            head: [0; HEADER_SIZE_MAX],
            head_len: 0,
            kept: Vec::new(),
            kept_pos: 0,
            may_hold_output: false,
            frames: 0,
            frame_start: 0,
            total_in: 0,
            total_out: 0,
            fault: None,
        }
    }

    /// The same stream before its first frame. A context never sees other
    /// data: see [`crate::pool`].
    #[must_use]
    pub fn renewed(&self) -> Self {
        Self::new(self.limits, self.single_frame)
    }

    /// How many bytes of input were decoded.
    pub fn total_in(&self) -> u64 {
        self.total_in
    }

    /// How many bytes of content came out.
    pub fn total_out(&self) -> u64 {
        self.total_out
    }

    /// Whether the input so far is whole: frames, or the one frame.
    pub fn is_whole(&self) -> bool {
        self.is_over() || (!self.single_frame && self.is_at_border() && self.fault.is_none())
    }

    /// Whether a frame has just ended.
    fn is_at_border(&self) -> bool {
        let between = matches!(self.place, Place::Header) && self.head_len == 0;
        between && self.frames > 0 && !self.has_kept()
    }

    /// Whether nothing more is decoded: other bytes follow, or the one frame
    /// is whole.
    pub fn is_over(&self) -> bool {
        matches!(self.place, Place::End)
    }

    /// Whether nothing can come out before more input goes in.
    pub fn needs_input(&self) -> bool {
        let idle = !self.has_kept() && !self.may_hold_output && self.fault.is_none();
        idle && !self.is_over()
    }

    /// The bytes after the end.
    pub fn unused(&self) -> Vec<u8> {
        if self.is_over() {
            [&self.head[..self.head_len], &self.kept[self.kept_pos..]].concat()
        } else {
            Vec::new()
        }
    }

    /// How much memory the stream holds, in bytes.
    pub fn memory(&mut self) -> usize {
        self.kept.capacity() + self.context.as_mut().map_or(0, StepContext::size)
    }

    /// How much input waits.
    pub fn waiting(&self) -> usize {
        self.kept.len() - self.kept_pos
    }

    fn has_kept(&self) -> bool {
        self.waiting() > 0
    }

    /// How much content the frame at hand has left, where that is known and
    /// libzstd still holds the frame.
    pub fn content_left(&self) -> Option<u64> {
        match self.place {
            Place::Content { left, .. } => left,
            _ => None,
        }
    }

    /// Puts input in line behind what waits already.
    pub fn keep(&mut self, input: &[u8]) {
        if self.kept_pos > 0 && self.kept_pos >= self.kept.len() / 2 {
            self.kept.drain(..self.kept_pos);
            self.kept_pos = 0;
        }
        self.kept.extend_from_slice(input);
    }

    /// Decodes what waits and then `input` from `used` on, and appends what
    /// comes out to `out`, of which `written` bytes are taken already. Moves
    /// both forward, also when it fails: what came out before is good, and the
    /// same error comes again.
    ///
    /// At least one step is taken; then the interrupt is looked at after each.
    pub fn run(
        &mut self,
        input: &[u8],
        used: &mut usize,
        out: &mut [MaybeUninit<u8>],
        written: &mut usize,
        interrupt: &impl Interrupt,
    ) -> Result<Progress, Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let progress = self.walk(input, used, out, written, interrupt);
        if let Err(fault) = &progress {
            self.fault = Some(fault.clone());
            self.context = None;
        }
        progress
    }

    fn walk(
        &mut self,
        input: &[u8],
        used: &mut usize,
        out: &mut [MaybeUninit<u8>],
        written: &mut usize,
        interrupt: &impl Interrupt,
    ) -> Result<Progress, Error> {
        loop {
            let kept = std::mem::take(&mut self.kept);
            let from_kept = self.kept_pos < kept.len();
            let piece = if from_kept {
                &kept[self.kept_pos..]
            } else {
                &input[*used..]
            };
            let step = self.step(piece, out, written);
            self.kept = kept;
            match step? {
                Step::Took(count) if from_kept => {
                    self.kept_pos += count;
                    if self.kept_pos == self.kept.len() {
                        self.kept = Vec::new();
                        self.kept_pos = 0;
                    }
                }
                Step::Took(count) => *used += count,
                Step::Starved => return Ok(Progress::Done),
                Step::Full => return Ok(Progress::NeedsRoom(out.len() + 1)),
            }
            if interrupt.is_asked() {
                return Ok(Progress::Interrupted);
            }
        }
    }

    /// The fault of an input that ends here, if it is one.
    pub fn end(&mut self) -> Result<(), Error> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.is_over() || self.is_at_border() {
            return Ok(());
        }
        if matches!(self.place, Place::Header) && self.head_len > 0 {
            // What was too short to tell is judged as it is.
            header(&self.head[..self.head_len], 0)
                .map_err(|error| error.shifted(self.frame_start))?;
        }
        if self.frames == 0 && self.head_len == 0 && matches!(self.place, Place::Header) {
            return Err(Error::Empty);
        }
        let part = match self.place {
            Place::Header if self.head_len < 4 => "magic number",
            Place::Header => "header",
            Place::Skipping(_) => "skippable payload",
            _ => "block",
        };
        Err(Error::Truncated {
            frame: usize::try_from(self.frame_start).unwrap_or(usize::MAX),
            part,
            len: usize::try_from(self.total_in).unwrap_or(usize::MAX),
        })
    }

    fn step(
        &mut self,
        input: &[u8],
        out: &mut [MaybeUninit<u8>],
        written: &mut usize,
    ) -> Result<Step, Error> {
        match self.place {
            Place::End => Ok(Step::Starved),
            _ if input.is_empty() && !self.may_hold_output => Ok(Step::Starved),
            Place::Header => self.read_header(input),
            Place::Skipping(left) => {
                let count = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
                self.total_in += count as u64;
                match left - count as u64 {
                    0 => self.end_frame(false),
                    left => self.place = Place::Skipping(left),
                }
                Ok(Step::Took(count))
            }
            Place::Content { wanted, left } => {
                let piece = &input[..input.len().min(wanted)];
                self.decode(piece, left, out, written)
            }
        }
    }

    /// Collects a header, byte by byte if it must be, and judges it.
    fn read_header(&mut self, input: &[u8]) -> Result<Step, Error> {
        if self.head_len == 0 {
            self.frame_start = self.total_in;
        }
        let before = self.head_len;
        let count = input.len().min(HEADER_SIZE_MAX - before);
        self.head[before..before + count].copy_from_slice(&input[..count]);
        let (size, found) = match header(&self.head[..before + count], 0) {
            Ok(Header::Data(data)) => (data.size, Ok(data)),
            Ok(Header::Skippable { payload }) => (8, Err(payload as u64)),
            Err(error) if self.may_become_a_header(&error, before + count) => {
                self.head_len += count;
                self.total_in += count as u64;
                return Ok(Step::Took(count));
            }
            Err(Error::Format { .. } | Error::Unsupported { .. })
                if self.frames > 0 && !self.starts_with_magic(before + count) =>
            {
                // No frame: what follows the last one is left to the caller.
                self.total_in -= before as u64;
                self.place = Place::End;
                return Ok(Step::Took(0));
            }
            Err(error) => return Err(error.shifted(self.frame_start)),
        };
        // The header may have ended inside what was collected.
        let took = size - before;
        self.total_in += took as u64;
        self.head_len = size;
        match found {
            Ok(data) => self.begin_frame(&data)?,
            Err(0) => self.end_frame(false),
            Err(payload) => {
                self.head_len = 0;
                self.place = Place::Skipping(payload);
            }
        }
        Ok(Step::Took(took))
    }

    /// Whether more bytes can change the judgement. With the first four one
    /// sees what an input that is no frame is instead.
    fn may_become_a_header(&self, error: &Error, len: usize) -> bool {
        let is_cut = matches!(error, Error::Truncated { .. });
        is_cut || (self.frames == 0 && len < 4)
    }

    fn starts_with_magic(&self, len: usize) -> bool {
        const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
        self.head[..len].starts_with(&MAGIC)
    }

    fn begin_frame(&mut self, data: &DataHeader) -> Result<(), Error> {
        let frame = usize::try_from(self.frame_start).unwrap_or(usize::MAX);
        self.limits.check_header(data, frame)?;
        if let (Some(size), Some(limit)) = (data.content_size, self.limits.max_output_size) {
            let declared = self.total_out.saturating_add(size);
            if declared > limit {
                return Err(Error::DeclaredOverLimit { declared, limit });
            }
        }
        let head = self.head;
        let head = &head[..std::mem::take(&mut self.head_len)];
        self.open_context(frame)?;
        let mut none = [];
        self.place = Place::Content {
            wanted: head.len(),
            left: data.content_size,
        };
        let before = self.total_in;
        self.decode(head, data.content_size, &mut none, &mut 0)?;
        // The header was counted when it was read, and holds no content.
        self.total_in = before;
        self.may_hold_output = false;
        Ok(())
    }

    fn open_context(&mut self, frame: usize) -> Result<(), Error> {
        if self.context.is_none() {
            let mut context = StepContext::new()?;
            context
                .set(
                    ZSTD_dParameter::ZSTD_d_windowLogMax,
                    DecompressLimits::WINDOW_LOG_MAX,
                )
                .map_err(|failure| failure.while_decoding(frame))?;
            self.context = Some(context);
        }
        Ok(())
    }

    /// One call of libzstd: at most one block.
    fn decode(
        &mut self,
        piece: &[u8],
        left: Option<u64>,
        out: &mut [MaybeUninit<u8>],
        written: &mut usize,
    ) -> Result<Step, Error> {
        if self.may_hold_output && *written == out.len() {
            return Ok(Step::Full);
        }
        let Some(context) = &mut self.context else {
            unreachable!("a frame has begun only when its context was made")
        };
        let frame = usize::try_from(self.frame_start).unwrap_or(usize::MAX);
        let start = *written;
        // One byte more than the limit: going over it is then seen.
        let allowed = match self.limits.max_output_size {
            Some(limit) => usize::try_from(limit - self.total_out)
                .unwrap_or(usize::MAX)
                .saturating_add(1),
            None => usize::MAX,
        };
        let end = out
            .len()
            .min(start.saturating_add(allowed.min(BLOCK_SIZE_MAX)));
        let mut source = ZSTD_inBuffer {
            src: piece.as_ptr().cast::<c_void>(),
            size: piece.len(),
            pos: 0,
        };
        let mut sink = ZSTD_outBuffer {
            dst: out.as_mut_ptr().cast::<c_void>(),
            size: end,
            pos: start,
        };
        // SAFETY: both buffers describe live slices that cannot overlap, and
        // the context is this thread's alone. Without the stable mode libzstd
        // keeps no pointer into either.
        let ret = unsafe {
            zstd_sys::ZSTD_decompressStream(context.as_ptr(), &raw mut sink, &raw mut source)
        };
        let wanted = Failure::check(ret).map_err(|failure| failure.while_decoding(frame))?;
        let made = sink.pos - start;
        *written = sink.pos;
        self.total_in += source.pos as u64;
        self.total_out += made as u64;
        if let Some(limit) = self.limits.max_output_size.filter(|l| *l < self.total_out) {
            *written -= usize::try_from(self.total_out - limit).unwrap_or(0);
            self.total_out = limit;
            return Err(Error::OutputOverLimit { limit });
        }
        let left = left.map(|left| left.saturating_sub(made as u64));
        // Also when there was no room at all and nothing to put there; then
        // the next step finds out.
        self.may_hold_output = sink.pos == end && left != Some(0) && wanted != 0;
        if wanted == 0 {
            // libzstd does not look when the last block is empty.
            if left.is_some_and(|left| left > 0) {
                return Err(Error::holds_less(frame));
            }
            self.end_frame(true);
        } else {
            self.place = Place::Content { wanted, left };
        }
        Ok(Step::Took(source.pos))
    }

    fn end_frame(&mut self, had_content: bool) {
        self.head_len = 0;
        self.frames += 1;
        self.place = if had_content && self.single_frame {
            Place::End
        } else {
            Place::Header
        };
    }
}
