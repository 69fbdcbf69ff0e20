//! `Zstd.compress`, `Zstd.decompress` and the small functions beside them.

use std::mem::MaybeUninit;

use magnus::{
    Error, Integer, Module, Object, RModule, RString, Range, Ruby, Value, function, prelude::*,
};
use zstd_engine::decode::{Decoder, Plan};
use zstd_engine::encode::Encoder;
use zstd_engine::params::{CompressParams, DecompressLimits, compress_bound, level_range};
use zstd_engine::walk::{InputWalk, Totals};
use zstd_engine::{Interrupt, Progress, libzstd_version, libzstd_version_number};

use crate::bytes::{OutputString, PinnedInput, string_from};
use crate::error::exception;
use crate::{gvl, options};

/// Outputs up to this size are made on the stack first: their String is then
/// allocated once, at its size.
const SCRATCH: usize = 4096;

/// How many block headers are read with the GVL held. The String is allocated
/// with it, so one release for an input of known size means that its headers
/// are read before: 2 GiB of content, in less than a millisecond.
const WALK_WITH_GVL: usize = 16 << 10;
/// How many are read between two looks at the interrupt, once it is released.
const WALK_RELEASED: usize = 4096;
/// Any number that the convoy guard takes for a long call.
const LONG: u64 = u64::MAX;

/// Registers the functions.
pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
    let version = ruby.str_new(libzstd_version());
    version.freeze();
    module.const_set("LIBZSTD_VERSION", version)?;
    module.const_set("DEFAULT_LEVEL", CompressParams::DEFAULT_LEVEL)?;
    // What lib/zstd_rb/module_functions.rb puts keywords on, and makes private.
    module.define_singleton_method("compress_string", function!(compress, 3))?;
    module.define_singleton_method("decompress_string", function!(decompress, 3))?;
    module.define_singleton_method("compress_bound", function!(bound, 1))?;
    module.define_singleton_method("zstd_version", function!(libzstd_version_number, 0))?;
    module.define_singleton_method("levels", function!(levels, 0))
}

fn compress(ruby: &Ruby, string: Value, level: Value, checksum: Value) -> Result<RString, Error> {
    let params = options::compress_params(ruby, level, checksum)?;
    let input = PinnedInput::new(string)?;
    let bytes = input.as_slice();
    let bound = compress_bound(bytes.len()).ok_or_else(|| too_long(ruby))?;
    let mut encoder = Encoder::new(bytes, params);
    let nanos = params.estimated_nanos(bytes.len());
    if bound <= SCRATCH {
        let mut scratch = [MaybeUninit::uninit(); SCRATCH];
        encode(ruby, &mut encoder, nanos, &mut scratch)?;
        return string_from(ruby, encoder.written(&scratch));
    }
    let mut output = OutputString::with_capacity(ruby, bound)?;
    encode(ruby, &mut encoder, nanos, output.room())?;
    output.finish(ruby, encoder.produced())
}

fn encode(
    ruby: &Ruby,
    encoder: &mut Encoder<'_>,
    nanos: u64,
    room: &mut [MaybeUninit<u8>],
) -> Result<(), Error> {
    loop {
        let progress = gvl::without(ruby, nanos, |interrupt| encoder.run(room, interrupt))?
            .map_err(|error| exception(ruby, &error))?;
        match progress {
            Progress::Done => return Ok(()),
            Progress::Interrupted => gvl::check_interrupts(ruby)?,
            Progress::NeedsRoom(_) => unreachable!("the bound is always enough"),
        }
    }
}

fn decompress(
    ruby: &Ruby,
    string: Value,
    max_output_size: Value,
    window_log_max: Value,
) -> Result<RString, Error> {
    let limits = options::decompress_limits(ruby, max_output_size, window_log_max)?;
    let input = PinnedInput::new(string)?;
    let bytes = input.as_slice();
    let totals = measure(ruby, bytes, limits)?;
    let plan = Plan::new(bytes.len(), totals, limits).map_err(|error| exception(ruby, &error))?;
    let nanos = plan.estimated_nanos(bytes.len());
    let mut output = if plan.is_exact() {
        OutputString::with_len(ruby, plan.capacity)?
    } else {
        OutputString::with_capacity(ruby, plan.capacity)?
    };
    let mut decoder = Decoder::new(bytes, plan);
    loop {
        let room = output.room();
        let progress = gvl::without(ruby, nanos, |interrupt| decoder.run(room, interrupt))?
            .map_err(|error| exception(ruby, &error))?;
        match progress {
            Progress::Done => return output.finish(ruby, decoder.produced()),
            Progress::Interrupted => gvl::check_interrupts(ruby)?,
            Progress::NeedsRoom(needed) => {
                let capacity = decoder.grown(output.capacity(), needed);
                output.grow(ruby, decoder.produced(), capacity)?;
            }
        }
    }
}

/// Walks the frames before anything is allocated.
fn measure(ruby: &Ruby, bytes: &[u8], limits: DecompressLimits) -> Result<Totals, Error> {
    let mut walk = InputWalk::new(limits);
    let mut walked = walk.step(bytes, WALK_WITH_GVL);
    while !walked.map_err(|error| exception(ruby, &error))? {
        walked = gvl::without(ruby, LONG, |interrupt| {
            walk_released(&mut walk, bytes, interrupt)
        })?;
        if matches!(walked, Ok(false)) {
            gvl::check_interrupts(ruby)?;
        }
    }
    Ok(walk.into_totals())
}

fn walk_released(
    walk: &mut InputWalk,
    bytes: &[u8],
    interrupt: &impl Interrupt,
) -> Result<bool, zstd_engine::Error> {
    loop {
        let done = walk.step(bytes, WALK_RELEASED)?;
        if done || interrupt.is_asked() {
            return Ok(done);
        }
    }
}

fn bound(ruby: &Ruby, len: Integer) -> Result<usize, Error> {
    let len = usize::try_from(len.to_u64()?).map_err(|_| too_long(ruby))?;
    compress_bound(len).ok_or_else(|| too_long(ruby))
}

fn too_long(ruby: &Ruby) -> Error {
    Error::new(
        ruby.exception_arg_error(),
        "libzstd takes no input of that length",
    )
}

fn levels(ruby: &Ruby) -> Result<Range, Error> {
    let (min, max) = level_range();
    ruby.range_new(min, max, false)
}
