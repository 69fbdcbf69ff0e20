//! `Zstd::Compressor`. The keywords are those of `lib/zstd_rb/compressor.rb`.

use std::mem::take;

use magnus::typed_data::Obj;
use magnus::{Error, Module, RModule, RString, Ruby, Value, method, prelude::*};
use zstd_engine::Progress;
use zstd_engine::stream_encode::{EncodeStream, Goal};

use crate::bytes::{BufferString, Output, PinnedInput};
use crate::error::{exception, stream_error};
use crate::stream::{State, Stream};
use crate::{gvl, options};

/// The least room an output gets.
const ROOM_MIN: usize = 64;
/// The most that a block is given at a time.
const CHUNK: usize = 256 << 10;

/// What a compressor keeps between calls.
struct Frame {
    stream: EncodeStream,
    /// Output of `<<`, until a call can return it.
    held: Vec<u8>,
}

impl State for Frame {
    fn totals(&self) -> (u64, u64) {
        (self.stream.total_in(), self.stream.total_out())
    }

    fn memory(&mut self) -> usize {
        self.stream.memory() + self.held.capacity()
    }
}

/// The Ruby object.
#[derive(Default, magnus::TypedData)]
#[magnus(class = "Zstd::Compressor", free_immediately, size)]
pub struct Compressor(Stream<Frame>);

impl magnus::DataTypeFunctions for Compressor {
    fn size(&self) -> usize {
        self.0.memory()
    }
}

/// Registers the class.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let class = module.define_class("Compressor", ruby.class_object())?;
    class.define_alloc_func::<Compressor>();
    class.define_private_method("open_stream", method!(Compressor::open, 3))?;
    class.define_private_method("compress_bytes", method!(Compressor::compress, 2))?;
    class.define_private_method("each_compressed", method!(Compressor::each, 1))?;
    class.define_private_method("flush_bytes", method!(Compressor::flush, 2))?;
    class.define_private_method("each_flushed", method!(Compressor::each_flushed, 1))?;
    class.define_private_method("reset_stream", method!(Compressor::reset, 1))?;
    class.define_method("<<", method!(Compressor::append, 1))?;
    class.define_method("total_in", method!(Compressor::total_in, 0))?;
    class.define_method("total_out", method!(Compressor::total_out, 0))?;
    class.define_method("finished?", method!(Compressor::is_finished, 0))?;
    class.define_method("close", method!(Compressor::close, 0))?;
    class.define_method("closed?", method!(Compressor::is_closed, 0))
}

impl Compressor {
    fn open(
        ruby: &Ruby,
        rb_self: &Self,
        level: Value,
        checksum: Value,
        pledged: Value,
    ) -> Result<(), Error> {
        let params = options::compress_params(ruby, level, checksum)?;
        let pledged = options::byte_count(ruby, "pledged_size", pledged)?;
        let stream = EncodeStream::new(params, pledged);
        let held = Vec::new();
        rb_self.0.initialize(ruby, Frame { stream, held })
    }

    fn compress(
        ruby: &Ruby,
        rb_self: &Self,
        bytes: Value,
        buffer: Value,
    ) -> Result<RString, Error> {
        let input = PinnedInput::new(bytes)?;
        let output = output_for(ruby, buffer, bytes)?;
        rb_self.open_for_input(ruby)?;
        rb_self.0.call(ruby, |frame| {
            let held = take(&mut frame.held);
            fill(ruby, frame, input.as_slice(), Goal::Continue, &held, output)
        })
    }

    /// `goal` is true for the end of the frame.
    fn flush(ruby: &Ruby, rb_self: &Self, ends: bool, buffer: Value) -> Result<RString, Error> {
        let output = output_for(ruby, buffer, ruby.qnil().as_value())?;
        rb_self.0.call(ruby, |frame| {
            let held = take(&mut frame.held);
            fill(ruby, frame, &[], goal(ends), &held, output)
        })
    }

    /// Keeps the output until a call can return it.
    fn append(ruby: &Ruby, rb_self: Obj<Self>, bytes: Value) -> Result<Value, Error> {
        let input = PinnedInput::new(bytes)?;
        rb_self.open_for_input(ruby)?;
        rb_self.0.call(ruby, |frame| {
            let output = fill(ruby, frame, input.as_slice(), Goal::Continue, &[], None)?;
            let output = PinnedInput::new(output.as_value())?;
            frame.held.extend_from_slice(output.as_slice());
            Ok(())
        })?;
        Ok(rb_self.as_value())
    }

    fn each(ruby: &Ruby, rb_self: &Self, bytes: Value) -> Result<(), Error> {
        let input = PinnedInput::new(bytes)?;
        rb_self.open_for_input(ruby)?;
        rb_self.each_chunk(ruby, input.as_slice(), Goal::Continue)
    }

    fn each_flushed(ruby: &Ruby, rb_self: &Self, ends: bool) -> Result<(), Error> {
        rb_self.each_chunk(ruby, &[], goal(ends))
    }

    /// A block that does not return leaves a frame with a hole, so the stream
    /// is broken then.
    fn each_chunk(&self, ruby: &Ruby, bytes: &[u8], goal: Goal) -> Result<(), Error> {
        let mut state = self.0.take(ruby)?;
        let mut used = 0;
        loop {
            let result = match next_chunk(ruby, &mut state, bytes, &mut used, goal) {
                Ok((chunk, done)) => {
                    if chunk.is_empty() {
                        self.0.put(ruby, state);
                        return Ok(());
                    }
                    let (back, result) = self
                        .0
                        .lend(state, || ruby.yield_value::<_, Value>(chunk).map(drop));
                    state = back;
                    if done && result.is_ok() {
                        self.0.put(ruby, state);
                        return Ok(());
                    }
                    result
                }
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.0.give_up(ruby, state, &error);
                return Err(error);
            }
        }
    }

    fn open_for_input(&self, ruby: &Ruby) -> Result<(), Error> {
        if self.0.ask(ruby, |frame| frame.stream.is_ended())? {
            let text = "the frame is finished; reset begins another";
            return Err(stream_error(ruby, text));
        }
        Ok(())
    }

    fn reset(ruby: &Ruby, rb_self: &Self, pledged: Value) -> Result<(), Error> {
        let pledged = options::byte_count(ruby, "pledged_size", pledged)?;
        rb_self.0.reset(ruby, |frame| Frame {
            stream: EncodeStream::new(frame.stream.params(), pledged),
            held: Vec::new(),
        })
    }

    fn total_in(ruby: &Ruby, rb_self: &Self) -> Result<u64, Error> {
        rb_self.0.totals(ruby).map(|totals| totals.0)
    }

    fn total_out(ruby: &Ruby, rb_self: &Self) -> Result<u64, Error> {
        rb_self.0.totals(ruby).map(|totals| totals.1)
    }

    fn is_finished(ruby: &Ruby, rb_self: &Self) -> Result<bool, Error> {
        rb_self.0.ask(ruby, |frame| frame.stream.is_ended())
    }

    fn close(ruby: &Ruby, rb_self: &Self) -> Result<(), Error> {
        rb_self.0.close(ruby)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

fn goal(ends: bool) -> Goal {
    if ends { Goal::End } else { Goal::Flush }
}

fn output_for(ruby: &Ruby, buffer: Value, input: Value) -> Result<Option<BufferString>, Error> {
    if buffer.is_nil() {
        return Ok(None);
    }
    BufferString::new(ruby, buffer, input).map(Some)
}

/// Makes all the output that there is for an input, after what was held.
fn fill(
    ruby: &Ruby,
    frame: &mut Frame,
    bytes: &[u8],
    goal: Goal,
    held: &[u8],
    buffer: Option<BufferString>,
) -> Result<RString, Error> {
    let room = held.len() + frame.stream.room(bytes.len(), goal).max(ROOM_MIN);
    let mut output = match buffer {
        Some(buffer) => Output::Buffer(buffer),
        None => Output::new(ruby, room)?,
    };
    if output.capacity() < room {
        output.grow(ruby, 0, room)?;
    }
    let mut written = 0;
    for (place, byte) in output.room().iter_mut().zip(held) {
        place.write(*byte);
        written += 1;
    }
    let mut used = 0;
    loop {
        let progress = encode(
            ruby,
            &mut frame.stream,
            bytes,
            &mut used,
            goal,
            &mut output,
            &mut written,
        )?;
        match progress {
            Progress::Done => return output.finish(ruby, written),
            Progress::Interrupted => gvl::check_interrupts(ruby)?,
            Progress::NeedsRoom(needed) => {
                let capacity = output.capacity().saturating_mul(2).max(needed);
                output.grow(ruby, written, capacity)?;
            }
        }
    }
}

/// Makes one piece of output, and tells whether it is the last.
fn next_chunk(
    ruby: &Ruby,
    frame: &mut Frame,
    bytes: &[u8],
    used: &mut usize,
    goal: Goal,
) -> Result<(RString, bool), Error> {
    if !frame.held.is_empty() {
        let held = take(&mut frame.held);
        return crate::bytes::string_from(ruby, &held).map(|chunk| (chunk, false));
    }
    let room = frame
        .stream
        .room(bytes.len() - *used, goal)
        .clamp(ROOM_MIN, CHUNK);
    let mut output = Output::new(ruby, room)?;
    let mut written = 0;
    loop {
        match encode(
            ruby,
            &mut frame.stream,
            bytes,
            used,
            goal,
            &mut output,
            &mut written,
        )? {
            Progress::Interrupted => gvl::check_interrupts(ruby)?,
            progress => {
                let done = progress == Progress::Done;
                return output.finish(ruby, written).map(|chunk| (chunk, done));
            }
        }
    }
}

fn encode(
    ruby: &Ruby,
    stream: &mut EncodeStream,
    bytes: &[u8],
    used: &mut usize,
    goal: Goal,
    output: &mut Output,
    written: &mut usize,
) -> Result<Progress, Error> {
    let nanos = stream
        .params()
        .estimated_nanos(stream.work(bytes.len() - *used, goal));
    let room = output.room();
    gvl::without(ruby, nanos, |interrupt| {
        stream.run(bytes, used, goal, room, written, interrupt)
    })?
    .map_err(|error| exception(ruby, &error))
}
