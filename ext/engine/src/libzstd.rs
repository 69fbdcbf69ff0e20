//! libzstd's return codes as [`Error`]s.

use zstd_sys::ZSTD_ErrorCode;

use crate::error::Error;

/// A return value of libzstd that is known to be an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    ret: usize,
}

impl Failure {
    /// Splits a return value into a size and a failure.
    pub(crate) fn check(ret: usize) -> Result<usize, Self> {
        // Errors are the negated codes (zstd.h: ZSTD_isError), all under 200;
        // a size that near to the top of the address space cannot be.
        if ret > usize::MAX - 4096 {
            Err(Self { ret })
        } else {
            Ok(ret)
        }
    }

    pub(crate) fn code(self) -> u32 {
        u32::try_from(self.ret.wrapping_neg()).unwrap_or(0)
    }

    pub(crate) fn is(self, code: ZSTD_ErrorCode) -> bool {
        self.code() == code as u32
    }

    fn name(self) -> &'static str {
        zstd_safe::get_error_name(self.ret)
    }

    /// The error for a decoder that failed in the frame at `frame`. What the
    /// walk has ruled out cannot come up any more: the rest is damage.
    pub(crate) fn while_decoding(self, frame: usize) -> Error {
        if self.is(ZSTD_ErrorCode::ZSTD_error_checksum_wrong) {
            Error::Checksum { frame }
        } else if self.is(ZSTD_ErrorCode::ZSTD_error_memory_allocation) {
            Error::Memory {
                what: "a decompression context",
            }
        } else if self.is(ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) {
            Error::corrupted(frame, "holds more content than its header declares")
        } else {
            Error::corrupted(frame, format!("does not decode: {}", self.name()))
        }
    }

    /// The error for an encoder that failed.
    pub(crate) fn while_encoding(self) -> Error {
        if self.is(ZSTD_ErrorCode::ZSTD_error_memory_allocation) {
            Error::Memory {
                what: "a compression context",
            }
        } else {
            Error::Internal {
                code: self.code(),
                name: self.name(),
            }
        }
    }
}
