//! libzstd's own time: the floor that the throughput bench puts the gem beside.
//!
//! A child process that takes one command per line on stdin and answers each with one line, so that
//! the bench can let the floor and the gem take turns within the same minute.
//! `benches/support/worker.rb` speaks the same protocol:
//!
//! ```text
//! version                        of libzstd
//! load samples|frames PATH       records, each a little-endian u32 length and its bytes
//! compress LEVEL PASSES [fresh]  what PASSES times through all samples take
//! decompress PASSES [fresh]      what PASSES times through all frames take
//! ```
//!
//! The last two answer with two numbers, nanoseconds of the clock and of the processor: on a
//! machine that others use too, only the second can be compared.
//!
//! Without `fresh` the output goes into one warm buffer, which is the least libzstd can need. With
//! it every call gets new memory, which is given back once a good deal of it has come together: a
//! binding must hand out a new String, and Ruby frees Strings by the collection. Writing to memory
//! that is in no cache is slower, so for larger outputs that is the fair floor.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::ptr::NonNull;
use std::time::Instant;

type Answer = Result<String, String>;

/// One compression context, reused for every call.
struct Compressor(NonNull<zstd_sys::ZSTD_CCtx>);

impl Compressor {
    fn new() -> Self {
        // SAFETY: takes no arguments; null (out of memory) is refused right here.
        Self(
            NonNull::new(unsafe { zstd_sys::ZSTD_createCCtx() })
                .expect("no memory for a compression context"),
        )
    }

    fn set_level(&mut self, level: c_int) -> Result<(), String> {
        // SAFETY: the context is live and, behind `&mut self`, used by nobody else.
        checked(unsafe {
            zstd_sys::ZSTD_CCtx_setParameter(
                self.0.as_ptr(),
                zstd_sys::ZSTD_cParameter::ZSTD_c_compressionLevel,
                level,
            )
        })?;
        Ok(())
    }

    fn compress(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        output.clear();
        // SAFETY: libzstd writes at most `capacity` bytes into memory that `output` owns and reads
        // `input.len()` bytes; the first `written` bytes are initialised when it returns without an
        // error.
        unsafe {
            let written = checked(zstd_sys::ZSTD_compress2(
                self.0.as_ptr(),
                output.as_mut_ptr().cast::<c_void>(),
                output.capacity(),
                input.as_ptr().cast::<c_void>(),
                input.len(),
            ))?;
            output.set_len(written);
        }
        Ok(())
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: created by ZSTD_createCCtx and freed once.
        unsafe { zstd_sys::ZSTD_freeCCtx(self.0.as_ptr()) };
    }
}

/// One decompression context, reused for every call.
struct Decompressor(NonNull<zstd_sys::ZSTD_DCtx>);

impl Decompressor {
    fn new() -> Self {
        // SAFETY: takes no arguments; null (out of memory) is refused right here.
        Self(
            NonNull::new(unsafe { zstd_sys::ZSTD_createDCtx() })
                .expect("no memory for a decompression context"),
        )
    }

    fn decompress(&mut self, frame: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        output.clear();
        // SAFETY: as in `Compressor::compress`.
        unsafe {
            let written = checked(zstd_sys::ZSTD_decompressDCtx(
                self.0.as_ptr(),
                output.as_mut_ptr().cast::<c_void>(),
                output.capacity(),
                frame.as_ptr().cast::<c_void>(),
                frame.len(),
            ))?;
            output.set_len(written);
        }
        Ok(())
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: created by ZSTD_createDCtx and freed once.
        unsafe { zstd_sys::ZSTD_freeDCtx(self.0.as_ptr()) };
    }
}

fn checked(code: usize) -> Result<usize, String> {
    // SAFETY: both functions take any value, and the name is a static C string.
    unsafe {
        if zstd_sys::ZSTD_isError(code) == 0 {
            return Ok(code);
        }
        Err(CStr::from_ptr(zstd_sys::ZSTD_getErrorName(code))
            .to_string_lossy()
            .into_owned())
    }
}

fn libzstd_version() -> String {
    // SAFETY: a static C string.
    unsafe { CStr::from_ptr(zstd_sys::ZSTD_versionString()) }
        .to_string_lossy()
        .into_owned()
}

fn compress_bound(input: &[u8]) -> usize {
    // SAFETY: plain arithmetic.
    unsafe { zstd_sys::ZSTD_compressBound(input.len()) }
}

fn content_size(frame: &[u8]) -> Result<usize, String> {
    // SAFETY: reads at most `frame.len()` bytes.
    let size =
        unsafe { zstd_sys::ZSTD_getFrameContentSize(frame.as_ptr().cast::<c_void>(), frame.len()) };
    // The two values beside a size, "unknown" and "error", are the two largest.
    if size >= u64::MAX - 1 {
        return Err("a frame without a content size".to_owned());
    }
    usize::try_from(size).map_err(|e| e.to_string())
}

fn read_records(path: &str) -> Result<Vec<Vec<u8>>, String> {
    let bytes = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let mut rest = bytes.as_slice();
    let mut records = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let (record, tail) = tail
            .split_at_checked(length)
            .ok_or("a record is cut short")?;
        records.push(record.to_vec());
        rest = tail;
    }
    Ok(records)
}

/// Calls `step` with each record and an output buffer of its capacity, `passes` times, and
/// measures.
fn timed(
    records: &[Vec<u8>],
    capacities: &[usize],
    passes: usize,
    fresh: bool,
    mut step: impl FnMut(&[u8], &mut Vec<u8>) -> Result<(), String>,
) -> Answer {
    let mut warm = Vec::with_capacity(if fresh {
        0
    } else {
        capacities.iter().copied().max().unwrap_or(0)
    });
    let mut garbage = Garbage::default();
    let started = Instant::now();
    let cpu_started = processor_time();
    for _ in 0..passes {
        for (record, &capacity) in records.iter().zip(capacities) {
            if fresh {
                let mut output = Vec::with_capacity(capacity);
                step(record, &mut output)?;
                output.shrink_to_fit();
                garbage.add(output);
            } else {
                step(record, &mut warm)?;
                black_box(&warm);
            }
        }
    }
    let cpu = processor_time() - cpu_started;
    Ok(format!("{} {cpu}", started.elapsed().as_nanos()))
}

/// Outputs that nobody needs any more, until the next collection.
#[derive(Default)]
struct Garbage {
    outputs: Vec<Vec<u8>>,
    bytes: usize,
}

impl Garbage {
    /// About when Ruby collects because of what Strings hold (`GC_MALLOC_LIMIT_MIN` to `MAX`).
    const LIMIT: usize = 24 << 20;

    fn add(&mut self, output: Vec<u8>) {
        self.bytes += output.len();
        self.outputs.push(output);
        if self.bytes > Self::LIMIT {
            *self = Self::default();
        }
    }
}

/// Nanoseconds that the process has run, in steps of a microsecond.
fn processor_time() -> c_long {
    unsafe extern "C" {
        safe fn clock() -> c_long;
    }
    // POSIX fixes CLOCKS_PER_SEC at a million.
    clock() * 1000
}

/// What is loaded, and the contexts.
struct Floor {
    compressor: Compressor,
    decompressor: Decompressor,
    samples: Vec<Vec<u8>>,
    sample_bounds: Vec<usize>,
    frames: Vec<Vec<u8>>,
    frame_sizes: Vec<usize>,
}

impl Floor {
    fn new() -> Self {
        Self {
            compressor: Compressor::new(),
            decompressor: Decompressor::new(),
            samples: Vec::new(),
            sample_bounds: Vec::new(),
            frames: Vec::new(),
            frame_sizes: Vec::new(),
        }
    }

    fn answer(&mut self, line: &str) -> Answer {
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["version"] => Ok(libzstd_version()),
            ["load", "samples", path] => {
                self.samples = read_records(path)?;
                self.sample_bounds = self
                    .samples
                    .iter()
                    .map(|sample| compress_bound(sample))
                    .collect();
                Ok("ok".to_owned())
            }
            ["load", "frames", path] => {
                self.frames = read_records(path)?;
                self.frame_sizes = self
                    .frames
                    .iter()
                    .map(|frame| content_size(frame))
                    .collect::<Result<_, _>>()?;
                Ok("ok".to_owned())
            }
            ["compress", level, passes, fresh @ ..] => {
                self.compressor.set_level(number(level)?)?;
                let compressor = &mut self.compressor;
                timed(
                    &self.samples,
                    &self.sample_bounds,
                    number(passes)?,
                    !fresh.is_empty(),
                    |sample, output| compressor.compress(sample, output),
                )
            }
            ["decompress", passes, fresh @ ..] => {
                let decompressor = &mut self.decompressor;
                timed(
                    &self.frames,
                    &self.frame_sizes,
                    number(passes)?,
                    !fresh.is_empty(),
                    |frame, output| decompressor.decompress(frame, output),
                )
            }
            _ => Err(format!("not a command: {line}")),
        }
    }
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("not a number: {word}"))
}

fn main() -> io::Result<()> {
    let mut floor = Floor::new();
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        match floor.answer(&line?) {
            Ok(text) => writeln!(stdout, "{text}")?,
            Err(text) => writeln!(stdout, "error {text}")?,
        }
        stdout.flush()?;
    }
    Ok(())
}
