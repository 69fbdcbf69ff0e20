//! Engine errors as Ruby exceptions: one exhaustive match at the border.

use std::borrow::Cow;

use magnus::value::Lazy;
use magnus::{Error, ExceptionClass, Module, RModule, Ruby};
use zstd_engine::{Error as EngineError, Fault};

macro_rules! classes {
    ($($constant:ident = $name:literal;)+) => {
        $(
            static $constant: Lazy<ExceptionClass> = Lazy::new(|ruby| {
                // UNWRAP: `init` has found the class before anything can fail.
                ruby.class_object()
                    .const_get::<_, RModule>("Zstd")
                    .and_then(|module| module.const_get($name))
                    .unwrap()
            });
        )+

        /// Finds the classes, which `lib/zstd_rb/errors.rb` defines, so that
        /// no Ractor has to.
        pub fn init(ruby: &Ruby, module: RModule) -> Result<(), Error> {
            $(
                module.const_get::<_, ExceptionClass>($name)?;
                Lazy::force(&$constant, ruby);
            )+
            Ok(())
        }
    };
}

classes! {
    ERROR = "Error";
    FORMAT = "FormatError";
    UNSUPPORTED = "UnsupportedError";
    TRUNCATED = "TruncatedError";
    TRAILING_DATA = "TrailingDataError";
    CORRUPTED = "CorruptedError";
    CHECKSUM = "ChecksumError";
    WINDOW_LIMIT = "WindowLimitError";
    OUTPUT_LIMIT = "OutputLimitError";
    DICTIONARY = "DictionaryError";
    PLEDGED_SIZE = "PledgedSizeError";
    STREAM = "StreamError";
    BUSY = "BusyError";
}

/// The exception for an engine error.
pub fn exception(ruby: &Ruby, error: &EngineError) -> Error {
    let class = match error.fault() {
        Fault::Format => ruby.get_inner(&FORMAT),
        Fault::Unsupported => ruby.get_inner(&UNSUPPORTED),
        Fault::Truncated => ruby.get_inner(&TRUNCATED),
        Fault::TrailingData => ruby.get_inner(&TRAILING_DATA),
        Fault::Corrupted => ruby.get_inner(&CORRUPTED),
        Fault::Checksum => ruby.get_inner(&CHECKSUM),
        Fault::WindowLimit => ruby.get_inner(&WINDOW_LIMIT),
        Fault::OutputLimit => ruby.get_inner(&OUTPUT_LIMIT),
        Fault::Dictionary => ruby.get_inner(&DICTIONARY),
        Fault::Memory => ruby.exception_no_mem_error(),
        Fault::Parameter => ruby.exception_arg_error(),
        Fault::PledgedSize => ruby.get_inner(&PLEDGED_SIZE),
        Fault::Internal => ruby.get_inner(&ERROR),
    };
    Error::new(class, error.to_string())
}

/// The exception for a stream that cannot be used as it is.
pub fn stream_error(ruby: &Ruby, message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ruby.get_inner(&STREAM), message)
}

/// The exception for a stream that is in use.
pub fn busy_error(ruby: &Ruby) -> Error {
    Error::new(
        ruby.get_inner(&BUSY),
        "the stream is in use: by another thread, or by the block of the call that runs; \
         give each thread a stream of its own",
    )
}
