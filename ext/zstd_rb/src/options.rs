//! Ruby values as engine parameters and limits. The keywords themselves are
//! those of the Ruby methods in `lib/zstd_rb`: nil stands for "not given".

use std::sync::atomic::{AtomicU64, Ordering};

use magnus::{Error, Integer, Ruby, Value, prelude::*};
use zstd_engine::params::{CompressParams, DecompressLimits, level_range};

use crate::error::exception;

/// The limit where a call names none; `u64::MAX` for no limit.
static DEFAULT_MAX_OUTPUT_SIZE: AtomicU64 = AtomicU64::new(u64::MAX);

/// The parameters of a compression.
pub fn compress_params(
    ruby: &Ruby,
    level: Value,
    checksum: Value,
) -> Result<CompressParams, Error> {
    let mut params = CompressParams::default();
    if let Some(level) = integer(ruby, "level", level, level_range())? {
        params
            .set_level(level)
            .map_err(|error| exception(ruby, &error))?;
    }
    params.checksum = checksum.to_bool();
    Ok(params)
}

/// The limits of a decompression.
pub fn decompress_limits(
    ruby: &Ruby,
    max_output_size: Value,
    window_log_max: Value,
) -> Result<DecompressLimits, Error> {
    let mut limits = DecompressLimits::default();
    limits.max_output_size = if max_output_size.is_nil() {
        default_max_output_size()
    } else {
        output_size(ruby, max_output_size)?
    };
    let window_logs = (
        DecompressLimits::WINDOW_LOG_MIN,
        DecompressLimits::WINDOW_LOG_MAX,
    );
    if let Some(log) = integer(ruby, "window_log_max", window_log_max, window_logs)? {
        limits
            .set_window_log_max(log)
            .map_err(|error| exception(ruby, &error))?;
    }
    Ok(limits)
}

/// An Integer, or nil for `None`. The range is for the message where not even
/// 64 bits are enough; the engine checks it.
fn integer(
    ruby: &Ruby,
    name: &str,
    value: Value,
    (min, max): (i32, i32),
) -> Result<Option<i64>, Error> {
    if value.is_nil() {
        return Ok(None);
    }
    let integer = expect_integer(ruby, name, value)?;
    integer.to_i64().map(Some).map_err(|_| {
        Error::new(
            ruby.exception_arg_error(),
            format!("{name}: {integer} is out of range, it can be {min} to {max}"),
        )
    })
}

/// A number of bytes, or nil for `None`.
pub fn byte_count(ruby: &Ruby, name: &str, value: Value) -> Result<Option<u64>, Error> {
    if value.is_nil() {
        return Ok(None);
    }
    let size = expect_integer(ruby, name, value)?;
    size.to_u64().map(Some).map_err(|_| {
        Error::new(
            ruby.exception_arg_error(),
            format!("{name}: {size} is out of range, it can be 0 to 2**64 - 1"),
        )
    })
}

fn expect_integer(ruby: &Ruby, name: &str, value: Value) -> Result<Integer, Error> {
    Integer::from_value(value).ok_or_else(|| {
        Error::new(
            ruby.exception_type_error(),
            format!("{name}: must be an Integer, not {}", value.inspect()),
        )
    })
}

/// The limit that `value` names: bytes, or `Float::INFINITY` for none.
pub fn output_size(ruby: &Ruby, value: Value) -> Result<Option<u64>, Error> {
    const NAME: &str = "max_output_size";
    if magnus::Float::from_value(value).is_some_and(|float| float.to_f64() == f64::INFINITY) {
        return Ok(None);
    }
    let size = expect_integer(ruby, NAME, value)?;
    if size < ruby.integer_from_i64(0) {
        return Err(Error::new(
            ruby.exception_arg_error(),
            format!("{NAME}: {size} is out of range, it can be 0 or more"),
        ));
    }
    // More than 64 bits of bytes there cannot be: no limit.
    Ok(size.to_u64().ok())
}

/// The limit of calls that name none.
pub fn default_max_output_size() -> Option<u64> {
    match DEFAULT_MAX_OUTPUT_SIZE.load(Ordering::Relaxed) {
        u64::MAX => None,
        limit => Some(limit),
    }
}

/// Sets the limit of calls that name none.
pub fn set_default_max_output_size(limit: Option<u64>) {
    DEFAULT_MAX_OUTPUT_SIZE.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
}
