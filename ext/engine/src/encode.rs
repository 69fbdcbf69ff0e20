//! One-shot encoding: one frame, made block by block, the same bytes as
//! `ZSTD_compress2` makes in one call.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use zstd_sys::{ZSTD_EndDirective, ZSTD_cParameter, ZSTD_inBuffer, ZSTD_outBuffer};

use crate::error::Error;
use crate::frame::{self, BLOCK_SIZE_MAX, Header};
use crate::libzstd::Failure;
use crate::params::CompressParams;
use crate::pool::CompressContext;
use crate::split::BlockSplitter;
use crate::{Interrupt, Progress};

// Parameters of zstd.h's experimental part, under the names of their numbers.
// zstd-safe refuses the first, because it cannot know that the input stays
// where it is between the calls; here it does.
const STABLE_IN_BUFFER: ZSTD_cParameter = ZSTD_cParameter::ZSTD_c_experimentalParam9;
const STABLE_OUT_BUFFER: ZSTD_cParameter = ZSTD_cParameter::ZSTD_c_experimentalParam10;
const BLOCK_SPLITTER_LEVEL: ZSTD_cParameter = ZSTD_cParameter::ZSTD_c_experimentalParam20;

/// The state of one compression.
pub struct Encoder<'i> {
    input: &'i [u8],
    params: CompressParams,
    context: Option<CompressContext>,
    splitter: Option<BlockSplitter>,
    consumed: usize,
    produced: usize,
    header_size: usize,
}

impl<'i> Encoder<'i> {
    /// An encoder that has not begun.
    pub fn new(input: &'i [u8], params: CompressParams) -> Self {
        Self {
            input,
            params,
            context: None,
            splitter: None,
            consumed: 0,
            produced: 0,
            header_size: 0,
        }
    }

    /// How many bytes of output there are so far.
    pub fn produced(&self) -> usize {
        self.produced
    }

    /// The output so far, which is at the start of `out`.
    pub fn written<'o>(&self, out: &'o [MaybeUninit<u8>]) -> &'o [u8] {
        let written = &out[..self.produced];
        // SAFETY: the contract of `run` makes `out` the buffer whose first
        // `produced` bytes libzstd has written.
        unsafe { std::slice::from_raw_parts(written.as_ptr().cast::<u8>(), written.len()) }
    }

    /// Encodes on into `out`, which is the same memory in each call and has
    /// room for [`crate::params::compress_bound`] bytes.
    ///
    /// At least one step is taken; then the interrupt is looked at after each.
    pub fn run(
        &mut self,
        out: &mut [MaybeUninit<u8>],
        interrupt: &impl Interrupt,
    ) -> Result<Progress, Error> {
        let mut context = match self.context.take() {
            Some(context) => context,
            None => self.begin()?,
        };
        loop {
            if self.step(&mut context, out)? {
                context.give_back();
                return Ok(Progress::Done);
            }
            if interrupt.is_asked() {
                self.context = Some(context);
                return Ok(Progress::Interrupted);
            }
        }
    }

    fn begin(&mut self) -> Result<CompressContext, Error> {
        let mut context = CompressContext::take()?;
        self.configure(&mut context)
            .map_err(Failure::while_encoding)?;
        Ok(context)
    }

    fn configure(&self, context: &mut CompressContext) -> Result<(), Failure> {
        let CompressParams { checksum, .. } = self.params;
        context.set(
            ZSTD_cParameter::ZSTD_c_compressionLevel,
            self.params.level(),
        )?;
        if checksum {
            context.set(ZSTD_cParameter::ZSTD_c_checksumFlag, 1)?;
        }
        if self.input.len() > BLOCK_SIZE_MAX {
            context.set(STABLE_IN_BUFFER, 1)?;
            context.set(STABLE_OUT_BUFFER, 1)?;
            // 1 is "never": the blocks come split already.
            context.set(BLOCK_SPLITTER_LEVEL, 1)?;
            // SAFETY: the context is live and this thread's alone.
            let ret = unsafe {
                zstd_sys::ZSTD_CCtx_setPledgedSrcSize(context.as_ptr(), self.input.len() as u64)
            };
            Failure::check(ret)?;
        }
        Ok(())
    }

    /// Encodes the next part of the input; true when the frame is whole.
    fn step(
        &mut self,
        context: &mut CompressContext,
        out: &mut [MaybeUninit<u8>],
    ) -> Result<bool, Error> {
        if self.input.len() <= BLOCK_SIZE_MAX {
            self.encode_whole(context, out)?;
            return Ok(true);
        }
        let shown = self.consumed + self.next_block_size();
        // A flush after a whole block adds no byte of its own.
        let end = if shown == self.input.len() {
            ZSTD_EndDirective::ZSTD_e_end
        } else {
            ZSTD_EndDirective::ZSTD_e_flush
        };
        let mut source = ZSTD_inBuffer {
            src: self.input.as_ptr().cast::<c_void>(),
            size: shown,
            pos: self.consumed,
        };
        let mut sink = ZSTD_outBuffer {
            dst: out.as_mut_ptr().cast::<c_void>(),
            size: out.len(),
            pos: self.produced,
        };
        // SAFETY: both buffers describe live slices that cannot overlap, and
        // the context is this thread's alone. The stable modes make libzstd
        // read earlier input again: `input` is borrowed for as long as `self`
        // lives, and never moves. `out` is the memory of the call before (the
        // contract of `run`); libzstd checks both addresses.
        let ret = unsafe {
            zstd_sys::ZSTD_compressStream2(context.as_ptr(), &raw mut sink, &raw mut source, end)
        };
        let left = Failure::check(ret).map_err(Failure::while_encoding)?;
        self.consumed = source.pos;
        self.produced = sink.pos;
        if self.header_size == 0 {
            self.header_size = frame_header_size(&out[..self.produced]);
        }
        Ok(end == ZSTD_EndDirective::ZSTD_e_end && left == 0)
    }

    fn next_block_size(&mut self) -> usize {
        let splitter = self
            .splitter
            .get_or_insert_with(|| BlockSplitter::new(self.params.level(), self.input.len()));
        // The frame header does not count as a loss.
        let blocks = self.produced - self.header_size;
        let saved = self.consumed.saturating_sub(blocks);
        splitter.block_size(&self.input[self.consumed..], saved)
    }

    /// Encodes an input of one block by a single call.
    fn encode_whole(
        &mut self,
        context: &mut CompressContext,
        out: &mut [MaybeUninit<u8>],
    ) -> Result<(), Error> {
        // SAFETY: the pointers and lengths are those of two live slices, which
        // cannot overlap; the context is this thread's alone. libzstd writes
        // only inside `out`.
        let ret = unsafe {
            zstd_sys::ZSTD_compress2(
                context.as_ptr(),
                out.as_mut_ptr().cast::<c_void>(),
                out.len(),
                self.input.as_ptr().cast::<c_void>(),
                self.input.len(),
            )
        };
        self.produced = Failure::check(ret).map_err(Failure::while_encoding)?;
        Ok(())
    }
}

/// The size of the frame header that `out` starts with.
fn frame_header_size(out: &[MaybeUninit<u8>]) -> usize {
    // SAFETY: libzstd has just written all of `out`.
    let written = unsafe { std::slice::from_raw_parts(out.as_ptr().cast::<u8>(), out.len()) };
    match frame::header(written, 0) {
        Ok(Header::Data(header)) => header.size,
        _ => 0,
    }
}
