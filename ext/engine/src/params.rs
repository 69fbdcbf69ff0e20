//! Parameters and limits: their names, bounds and checks.

use crate::error::Error;
use crate::frame::DataHeader;
use crate::libzstd::Failure;

/// Parameters of a compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressParams {
    level: i32,
    /// Whether a checksum of the content ends the frame (RFC 8878, 3.1.1).
    pub checksum: bool,
}

impl CompressParams {
    /// The level that libzstd takes when none is named.
    pub const DEFAULT_LEVEL: i32 = zstd_safe::CLEVEL_DEFAULT;

    /// The level of these parameters.
    pub const fn level(&self) -> i32 {
        self.level
    }

    /// Sets the level. libzstd would clamp one that is out of range in silence.
    pub fn set_level(&mut self, level: i64) -> Result<(), Error> {
        let (min, max) = level_range();
        self.level = i32::try_from(level)
            .ok()
            .filter(|level| (min..=max).contains(level))
            .ok_or(Error::Parameter {
                name: "level",
                value: level,
                min: min.into(),
                max: max.into(),
            })?;
        Ok(())
    }

    /// About how long compressing `len` bytes takes, in nanoseconds: the order
    /// of magnitude decides whether leaving the GVL can pay.
    pub fn estimated_nanos(&self, len: usize) -> u64 {
        // Measured per KiB of text with libzstd 1.5.7 on a 3 GHz x86-64.
        const PER_KIB: [u64; 23] = [
            2_500, 1_800, 2_000, 2_500, 3_500, 5_500, 8_000, 10_000, 13_000, 15_000, 18_000,
            25_000, 35_000, 50_000, 60_000, 90_000, 120_000, 150_000, 200_000, 250_000, 300_000,
            350_000, 400_000,
        ];
        let level = usize::try_from(self.level).unwrap_or(1);
        let per_kib = PER_KIB[level.min(PER_KIB.len() - 1)];
        let len = len as u64;
        // Higher levels also set up larger tables for each frame.
        per_kib.max(3_000) + (len.saturating_mul(per_kib) >> 10)
    }
}

impl Default for CompressParams {
    fn default() -> Self {
        Self {
            level: Self::DEFAULT_LEVEL,
            checksum: false,
        }
    }
}

/// The least and the largest compression level of this libzstd.
pub fn level_range() -> (i32, i32) {
    (zstd_safe::min_c_level(), zstd_safe::max_c_level())
}

/// What a decompression may at most use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecompressLimits {
    /// The largest output, in bytes; `None` for no limit.
    pub max_output_size: Option<u64>,
    window_log_max: i32,
}

impl DecompressLimits {
    /// The least `window_log_max`: the smallest window that a frame can name.
    pub const WINDOW_LOG_MIN: i32 = 10;
    /// The largest `window_log_max`: the largest window that libzstd decodes.
    pub const WINDOW_LOG_MAX: i32 = if usize::BITS == 32 { 30 } else { 31 };
    /// 128 MiB, what libzstd's own decoders allow by default.
    pub const DEFAULT_WINDOW_LOG: i32 = 27;

    /// Sets the largest window, as a power of two.
    pub fn set_window_log_max(&mut self, log: i64) -> Result<(), Error> {
        self.window_log_max = i32::try_from(log)
            .ok()
            .filter(|log| (Self::WINDOW_LOG_MIN..=Self::WINDOW_LOG_MAX).contains(log))
            .ok_or(Error::Parameter {
                name: "window_log_max",
                value: log,
                min: Self::WINDOW_LOG_MIN.into(),
                max: Self::WINDOW_LOG_MAX.into(),
            })?;
        Ok(())
    }

    /// The largest window, as a power of two.
    pub const fn window_log_max(&self) -> i32 {
        self.window_log_max
    }

    /// Refuses the frame at `frame` when its header asks for too much.
    pub(crate) fn check_header(&self, header: &DataHeader, frame: usize) -> Result<(), Error> {
        if header.window_size > self.window_max() {
            return Err(Error::WindowLimit {
                frame,
                window: header.window_size,
                limit: self.window_max(),
                log: self.window_log_max,
            });
        }
        if header.dict_id != 0 {
            return Err(Error::Dictionary {
                frame,
                wanted: header.dict_id,
                given: "none was given",
            });
        }
        Ok(())
    }

    /// The largest window, in bytes.
    pub const fn window_max(&self) -> u64 {
        1 << self.window_log_max
    }
}

impl Default for DecompressLimits {
    fn default() -> Self {
        Self {
            max_output_size: None,
            window_log_max: Self::DEFAULT_WINDOW_LOG,
        }
    }
}

/// About how long decoding takes at most, in nanoseconds, from the sizes on
/// both sides and the number of blocks and skippable frames.
pub const fn estimated_decode_nanos(input: usize, output: u64, blocks: usize) -> u64 {
    // Measured with text: a microsecond, and 1.5 GiB/s of output. What a block
    // costs does not shrink with its content: its tables are built all the
    // same, so a crowd of tiny frames takes long.
    let crowd = (blocks as u64).saturating_sub(1).saturating_mul(8_000);
    let content = output.saturating_mul(5) / 8;
    1_000_u64
        .saturating_add(content)
        .saturating_add((input as u64) / 4)
        .saturating_add(crowd)
}

/// The most bytes that compressing `len` bytes can make (zstd.h,
/// `ZSTD_compressBound`), or `None` when libzstd takes no input that large.
pub fn compress_bound(len: usize) -> Option<usize> {
    Failure::check(zstd_safe::compress_bound(len)).ok()
}
