//! `Zstd::Decompressor`. The keywords are those of
//! `lib/zstd_rb/decompressor.rb`.

use magnus::{Error, Module, RModule, RString, Ruby, Value, method, prelude::*};
use zstd_engine::Progress;
use zstd_engine::params::estimated_decode_nanos;
use zstd_engine::stream_decode::DecodeStream;

use crate::bytes::{BufferString, Output, PinnedInput, string_from};
use crate::error::{exception, stream_error};
use crate::stream::{State, Stream};
use crate::{gvl, options};

/// The least room an output gets, and how much it gets of the input's length
/// as long as nothing better is known. It doubles from there.
const ROOM_MIN: usize = 4096;
const ROOM_RATIO: usize = 4;
/// The least that an output grows to.
const GROWN_MIN: usize = 1 << 20;
/// The most that a block is given at a time.
const CHUNK: usize = 256 << 10;

impl State for DecodeStream {
    fn totals(&self) -> (u64, u64) {
        (self.total_in(), self.total_out())
    }

    fn memory(&mut self) -> usize {
        Self::memory(self)
    }
}

/// The Ruby object.
#[derive(Default, magnus::TypedData)]
#[magnus(class = "Zstd::Decompressor", free_immediately, size)]
pub struct Decompressor(Stream<DecodeStream>);

impl magnus::DataTypeFunctions for Decompressor {
    fn size(&self) -> usize {
        self.0.memory()
    }
}

/// Registers the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Decompressor", ruby.class_object())?;
    class.define_alloc_func::<Decompressor>();
    class.define_private_method("open_stream", method!(Decompressor::open, 3))?;
    class.define_private_method("decompress_bytes", method!(Decompressor::decompress, 3))?;
    class.define_private_method("each_decompressed", method!(Decompressor::each, 1))?;
    class.define_private_method("finish_bytes", method!(Decompressor::finish, 1))?;
    class.define_private_method("check_end", method!(Decompressor::check_end, 0))?;
    class.define_method("finished?", method!(Decompressor::is_finished, 0))?;
    class.define_method("needs_input?", method!(Decompressor::needs_input, 0))?;
    class.define_method("unused", method!(Decompressor::unused, 0))?;
    class.define_method("total_in", method!(Decompressor::total_in, 0))?;
    class.define_method("total_out", method!(Decompressor::total_out, 0))?;
    class.define_method("reset", method!(Decompressor::reset, 0))?;
    class.define_method("close", method!(Decompressor::close, 0))?;
    class.define_method("closed?", method!(Decompressor::is_closed, 0))
}

impl Decompressor {
    fn open(
        ruby: &Ruby,
        rb_self: &Self,
        max_output_size: Value,
        window_log_max: Value,
        single_frame: Value,
    ) -> Result<(), Error> {
        let limits = options::decompress_limits(ruby, max_output_size, window_log_max)?;
        let stream = DecodeStream::new(limits, single_frame.to_bool());
        rb_self.0.initialize(ruby, stream)
    }

    fn decompress(
        ruby: &Ruby,
        rb_self: &Self,
        bytes: Value,
        max_output: Value,
        buffer: Value,
    ) -> Result<RString, Error> {
        let most = most_output(ruby, max_output)?;
        let input = PinnedInput::new(bytes)?;
        let output = output_for(ruby, buffer, bytes)?;
        rb_self.open_for_input(ruby, input.as_slice())?;
        rb_self.0.call(ruby, |stream| {
            fill(ruby, stream, input.as_slice(), most, output)
        })
    }

    fn finish(ruby: &Ruby, rb_self: &Self, buffer: Value) -> Result<RString, Error> {
        let output = output_for(ruby, buffer, ruby.qnil().as_value())?;
        rb_self.0.call(ruby, |stream| {
            let rest = fill(ruby, stream, &[], None, output)?;
            stream.end().map_err(|error| exception(ruby, &error))?;
            Ok(rest)
        })
    }

    /// What `finish` checks after its block has had the rest.
    fn check_end(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        rb_self.0.call(ruby, |stream| {
            stream.end().map_err(|error| exception(ruby, &error))
        })
    }

    fn each(ruby: &Ruby, rb_self: &Self, bytes: Value) -> Result<(), Error> {
        let input = PinnedInput::new(bytes)?;
        rb_self.open_for_input(ruby, input.as_slice())?;
        let mut state = rb_self.0.take(ruby)?;
        // What a block that never returns leaves behind is kept for the next
        // call.
        let mut rest = input.as_slice();
        loop {
            match next_chunk(ruby, &mut state, &mut rest) {
                Ok((chunk, done)) => {
                    if chunk.is_empty() {
                        rb_self.0.put(ruby, state);
                        return Ok(());
                    }
                    let (mut back, result) = rb_self
                        .0
                        .lend(state, || ruby.yield_value::<_, Value>(chunk).map(drop));
                    if let Err(error) = result {
                        back.keep(rest);
                        rb_self.0.put(ruby, back);
                        return Err(error);
                    }
                    state = back;
                    if done {
                        rb_self.0.put(ruby, state);
                        return Ok(());
                    }
                }
                Err(error) => {
                    rb_self.0.give_up(ruby, state, &error);
                    return Err(error);
                }
            }
        }
    }

    fn open_for_input(&self, ruby: &Ruby, bytes: &[u8]) -> Result<(), Error> {
        let is_over = self
            .0
            .ask(ruby, |stream| stream.is_over().then(|| stream.total_in()))?;
        match is_over {
            Some(end) if !bytes.is_empty() => Err(stream_error(
                ruby,
                format!(
                    "the data ended at byte {end} of the input; unused has what came after, reset begins anew"
                ),
            )),
            _ => Ok(()),
        }
    }

    fn is_finished(ruby: &Ruby, rb_self: &Self) -> Result<bool, Error> {
        rb_self.0.ask(ruby, DecodeStream::is_whole)
    }

    fn needs_input(ruby: &Ruby, rb_self: &Self) -> Result<bool, Error> {
        rb_self.0.ask(ruby, DecodeStream::needs_input)
    }

    fn unused(ruby: &Ruby, rb_self: &Self) -> Result<RString, Error> {
        let unused = rb_self.0.ask(ruby, DecodeStream::unused)?;
        string_from(ruby, &unused)
    }

    fn total_in(ruby: &Ruby, rb_self: &Self) -> Result<u64, Error> {
        rb_self.0.totals(ruby).map(|totals| totals.0)
    }

    fn total_out(ruby: &Ruby, rb_self: &Self) -> Result<u64, Error> {
        rb_self.0.totals(ruby).map(|totals| totals.1)
    }

    fn reset(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        rb_self.0.reset(ruby, DecodeStream::renewed)
    }

    fn close(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        rb_self.0.close(ruby)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

fn output_for(ruby: &Ruby, buffer: Value, input: Value) -> Result<Option<BufferString>, Error> {
    if buffer.is_nil() {
        return Ok(None);
    }
    BufferString::new(ruby, buffer, input).map(Some)
}

fn most_output(ruby: &Ruby, max_output: Value) -> Result<Option<usize>, Error> {
    match options::byte_count(ruby, "max_output", max_output)? {
        None => Ok(None),
        Some(0) => Err(Error::new(
            ruby.exception_arg_error(),
            "max_output: 0 is out of range, it can be 1 or more",
        )),
        Some(most) => Ok(Some(usize::try_from(most).unwrap_or(usize::MAX))),
    }
}

/// How much room to begin with for an input of `len` bytes.
fn first_room(stream: &DecodeStream, len: usize, most: usize) -> usize {
    let guess = len
        .saturating_add(stream.waiting())
        .saturating_mul(ROOM_RATIO);
    let room = match stream.content_left() {
        // Not on its word alone: what has no input behind it is not allocated.
        Some(left) => usize::try_from(left).map_or(guess, |left| left.min(guess)),
        None => guess,
    };
    room.max(ROOM_MIN).min(most)
}

/// How much room comes next, where `capacity` bytes were not enough. Each
/// growth takes the lock, so it is a large one.
fn grown_room(stream: &DecodeStream, len: usize, capacity: usize, written: usize) -> usize {
    // No frame expands more than this (RFC 8878: 4 bytes make 128 KiB).
    const EXPANSION_MAX: usize = 32 << 10;
    let believable = len.saturating_mul(EXPANSION_MAX);
    let declared = stream
        .content_left()
        .and_then(|left| usize::try_from(left).ok())
        .map_or(0, |left| written.saturating_add(left.min(believable)));
    capacity.saturating_mul(2).max(GROWN_MIN).max(declared)
}

/// Decodes all there is, or as much as `most` allows.
fn fill(
    ruby: &Ruby,
    stream: &mut DecodeStream,
    bytes: &[u8],
    most: Option<usize>,
    buffer: Option<BufferString>,
) -> Result<RString, Error> {
    let limit = most.unwrap_or(usize::MAX);
    let mut used = 0;
    let mut written = 0;
    let room = first_room(stream, bytes.len(), limit);
    let mut output = match buffer {
        Some(buffer) => Output::Buffer(buffer),
        None => Output::new(ruby, room)?,
    };
    if output.capacity() < room {
        output.grow(ruby, 0, room)?;
    }
    loop {
        match decode(ruby, stream, bytes, &mut used, &mut output, &mut written)? {
            Ok(Progress::Interrupted) => gvl::check_interrupts(ruby)?,
            Ok(Progress::NeedsRoom(needed)) if written < limit => {
                let grown = grown_room(stream, bytes.len(), output.capacity(), written);
                output.grow(ruby, written, grown.max(needed).min(limit))?;
            }
            Ok(_) => break,
            // What came before the fault is given out first, where the caller
            // asks for pieces anyway. The fault comes again.
            Err(_) if most.is_some() && written > 0 => break,
            Err(error) => return Err(exception(ruby, &error)),
        }
    }
    stream.keep(&bytes[used..]);
    output.finish(ruby, written)
}

/// Decodes one piece, and tells whether it is the last.
fn next_chunk(
    ruby: &Ruby,
    stream: &mut DecodeStream,
    rest: &mut &[u8],
) -> Result<(RString, bool), Error> {
    let mut used = 0;
    let mut written = 0;
    let room = first_room(stream, rest.len(), CHUNK);
    let mut output = Output::new(ruby, room)?;
    let done = loop {
        match decode(ruby, stream, rest, &mut used, &mut output, &mut written)? {
            Ok(Progress::Interrupted) => gvl::check_interrupts(ruby)?,
            Ok(progress) => break progress == Progress::Done,
            Err(_) if written > 0 => break false,
            Err(error) => return Err(exception(ruby, &error)),
        }
    };
    *rest = &rest[used..];
    if done {
        // Only what is after the end of the data is left.
        stream.keep(std::mem::take(rest));
    }
    output.finish(ruby, written).map(|chunk| (chunk, done))
}

fn decode(
    ruby: &Ruby,
    stream: &mut DecodeStream,
    bytes: &[u8],
    used: &mut usize,
    output: &mut Output,
    written: &mut usize,
) -> Result<Result<Progress, zstd_engine::Error>, Error> {
    let left = output.capacity() - *written;
    let nanos = estimated_decode_nanos(bytes.len() - *used, left as u64, 1);
    let room = output.room();
    gvl::without(ruby, nanos, |interrupt| {
        stream.run(bytes, used, room, written, interrupt)
    })
}
