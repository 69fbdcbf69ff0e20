//! Keyword arguments as engine parameters and limits.

use std::sync::atomic::{AtomicU64, Ordering};

use magnus::r_hash::ForEach;
use magnus::scan_args::scan_args;
use magnus::value::LazyId;
use magnus::{Error, Integer, RHash, Ruby, Symbol, TryConvert, Value, prelude::*};
use zstd_engine::params::{CompressParams, DecompressLimits};

use crate::error::exception;

static LEVEL: LazyId = LazyId::new("level");
static CHECKSUM: LazyId = LazyId::new("checksum");
static MAX_OUTPUT_SIZE: LazyId = LazyId::new("max_output_size");
static WINDOW_LOG_MAX: LazyId = LazyId::new("window_log_max");

/// The limit where a call names none; `u64::MAX` for no limit.
static DEFAULT_MAX_OUTPUT_SIZE: AtomicU64 = AtomicU64::new(u64::MAX);

/// Resolves the names once, so that no Ractor has to.
pub fn init(ruby: &Ruby) {
    for name in [&LEVEL, &CHECKSUM, &MAX_OUTPUT_SIZE, &WINDOW_LOG_MAX] {
        LazyId::force(name, ruby);
    }
}

/// The String and the parameters of a call of `compress`.
pub fn compress(ruby: &Ruby, args: &[Value]) -> Result<(Value, CompressParams), Error> {
    let mut params = CompressParams::default();
    let string = each_option(ruby, args, |name, value| {
        if name == LEVEL {
            if !value.is_nil() {
                let level = integer(ruby, "level", value)?;
                let level = level.to_i64().unwrap_or(i64::MAX);
                params
                    .set_level(level)
                    .map_err(|error| exception(ruby, &error))?;
            }
        } else if name == CHECKSUM {
            params.checksum = value.to_bool();
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    Ok((string, params))
}

/// The String and the limits of a call of `decompress`.
pub fn decompress(ruby: &Ruby, args: &[Value]) -> Result<(Value, DecompressLimits), Error> {
    let mut limits = DecompressLimits::default();
    limits.max_output_size = default_max_output_size();
    let string = each_option(ruby, args, |name, value| {
        if name == MAX_OUTPUT_SIZE {
            if !value.is_nil() {
                limits.max_output_size = output_size(ruby, value)?;
            }
        } else if name == WINDOW_LOG_MAX {
            if !value.is_nil() {
                let log = integer(ruby, "window_log_max", value)?;
                limits
                    .set_window_log_max(log.to_i64().unwrap_or(i64::MAX))
                    .map_err(|error| exception(ruby, &error))?;
            }
        } else {
            return Ok(false);
        }
        Ok(true)
    })?;
    Ok((string, limits))
}

/// Splits the arguments into the one String and the keywords, and hands each
/// keyword to `set`, which says whether it knows the name.
fn each_option(
    ruby: &Ruby,
    args: &[Value],
    mut set: impl FnMut(Symbol, Value) -> Result<bool, Error>,
) -> Result<Value, Error> {
    match *args {
        [string] if RHash::from_value(string).is_none() => return Ok(string),
        _ => {}
    }
    let scanned = scan_args::<(Value,), (), (), (), RHash, ()>(args)?;
    let (string,) = scanned.required;
    scanned.keywords.foreach(|key: Value, value: Value| {
        let known = match Symbol::from_value(key) {
            Some(name) => set(name, value)?,
            None => false,
        };
        if known {
            Ok(ForEach::Continue)
        } else {
            Err(Error::new(
                ruby.exception_arg_error(),
                format!("unknown keyword: {}", key.inspect()),
            ))
        }
    })?;
    Ok(string)
}

fn integer(ruby: &Ruby, name: &str, value: Value) -> Result<Integer, Error> {
    Integer::from_value(value).ok_or_else(|| {
        Error::new(
            ruby.exception_type_error(),
            format!("{name}: must be an Integer, not {}", value.inspect()),
        )
    })
}

/// The limit that `value` names: bytes, or `Float::INFINITY` for none.
pub fn output_size(ruby: &Ruby, value: Value) -> Result<Option<u64>, Error> {
    if f64::try_convert(value).is_ok_and(|float| float == f64::INFINITY) {
        return Ok(None);
    }
    let size = integer(ruby, "max_output_size", value)?;
    if size < ruby.integer_from_i64(0) {
        return Err(Error::new(
            ruby.exception_arg_error(),
            format!("max_output_size: must be 0 or more, not {size}"),
        ));
    }
    // Larger than that nothing can be: no limit.
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
