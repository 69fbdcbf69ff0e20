//! One-shot decoding: right answers, bounds before allocations, odd frames.

mod support;

use std::ffi::c_void;
use std::mem::MaybeUninit;

use proptest::prelude::*;
use support::{compress, decompress, decompress_counting, mixture, noise};
use zstd_engine::decode::{Decoder, Plan};
use zstd_engine::params::DecompressLimits;
use zstd_engine::walk::InputWalk;
use zstd_engine::{Error, Fault, Interrupt, Progress};

/// Interrupts after each step.
struct Always;

impl Interrupt for Always {
    fn is_asked(&self) -> bool {
        true
    }
}

fn limits(max_output_size: Option<u64>) -> DecompressLimits {
    let mut limits = DecompressLimits::default();
    limits.max_output_size = max_output_size;
    limits
}

fn fault(input: &[u8]) -> Fault {
    decompress(input, limits(None)).unwrap_err().fault()
}

/// A frame header without a content size, window 128 KiB.
const HEADER: [u8; 6] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, 7 << 3];

fn block(kind: u32, size: usize, last: bool, body: &[u8]) -> Vec<u8> {
    let field = u32::try_from(size).unwrap() << 3 | kind << 1 | u32::from(last);
    let mut block = field.to_le_bytes()[..3].to_vec();
    block.extend_from_slice(body);
    block
}

/// A frame of unknown size with so many RLE blocks of 128 KiB.
fn rle_frame(blocks: usize) -> Vec<u8> {
    let mut frame = HEADER.to_vec();
    for at in 1..=blocks {
        frame.extend(block(1, 128 << 10, at == blocks, b"z"));
    }
    frame
}

/// What `zstd -c` makes of a pipe: a frame that does not name its size.
fn streamed(input: &[u8]) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context
        .set_parameter(zstd_safe::CParameter::ContentSizeFlag(false))
        .unwrap();
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(input.len()));
    context.compress2(&mut out, input).unwrap();
    out
}

#[test]
fn round_trips_of_every_size_class() {
    let text = mixture(9 << 20, 5);
    for len in [
        0,
        1,
        2,
        255,
        256,
        65_792,
        131_072,
        131_073,
        1 << 20,
        (1 << 20) + 1,
        9 << 20,
    ] {
        for checksum in [false, true] {
            let input = &text[..len];
            let frame = compress(input, 1, checksum);
            assert!(
                decompress(&frame, limits(None)).unwrap() == input,
                "{len} bytes"
            );
            let frame = streamed(input);
            assert!(
                decompress(&frame, limits(None)).unwrap() == input,
                "{len} bytes, streamed"
            );
        }
    }
}

#[test]
fn frames_of_all_kinds_in_one_input() {
    let text = mixture(3 << 20, 9);
    let mut input = Vec::new();
    let mut expected = Vec::new();
    for (turn, len) in [0, 5, 3 << 20, 17, 2 << 20, 100_000]
        .into_iter()
        .enumerate()
    {
        let part = &text[..len];
        input.extend(if turn % 2 == 0 {
            streamed(part)
        } else {
            compress(part, 3, true)
        });
        expected.extend_from_slice(part);
        let payload = noise(turn * 3, 1);
        input.extend(0x184D_2A50_u32.to_le_bytes());
        input.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
        input.extend(payload);
    }
    assert!(decompress(&input, limits(None)).unwrap() == expected);
}

#[test]
fn unknown_size_grows_by_doubling() {
    // 300 MiB from 9.6 KB: far over any honest ratio, so it starts at 1 MiB.
    let (out, growths) = decompress_counting(&rle_frame(2400), limits(None)).unwrap();
    assert_eq!(out.len(), 2400 * (128 << 10));
    assert!(out.iter().all(|byte| *byte == b'z'));
    assert!(growths <= 9, "{growths} growths");
    // Text shrinks less than sixteenfold: its bound is allocated at once.
    let text = mixture(5 << 20, 2);
    let (out, growths) = decompress_counting(&streamed(&text), limits(None)).unwrap();
    assert!(out == text);
    assert_eq!(growths, 0);
}

#[test]
fn the_walk_allows_no_more_than_the_blocks_can_hold() {
    let mut walk = InputWalk::new(limits(None));
    let frame = rle_frame(10);
    assert!(walk.step(&frame, 100).unwrap());
    let totals = walk.into_totals();
    assert_eq!(totals.bound, 10 * (128 << 10));
    assert!(totals.has_unknown_size);
    let plan = Plan::new(frame.len(), totals, limits(Some(5))).unwrap();
    assert_eq!(plan.capacity, 5 + (128 << 10));
}

#[test]
fn limits_hold_to_the_byte() {
    let text = mixture(2 << 20, 3);
    for frame in [compress(&text, 3, false), streamed(&text), rle_frame(16)] {
        let size = 2 << 20;
        assert!(decompress(&frame, limits(Some(size))).is_ok());
        let error = decompress(&frame, limits(Some(size - 1))).unwrap_err();
        assert_eq!(error.fault(), Fault::OutputLimit);
        let error = decompress(&frame, limits(Some(0))).unwrap_err();
        assert_eq!(error.fault(), Fault::OutputLimit);
    }
    assert_eq!(
        decompress(&compress(b"", 3, false), limits(Some(0))),
        Ok(vec![])
    );
}

#[test]
fn each_prefix_of_a_frame_is_truncated() {
    for frame in [
        compress(&mixture(5000, 1), 3, true),
        streamed(&mixture(300_000, 1)),
    ] {
        for len in (0..frame.len()).step_by(1 + frame.len() / 3000) {
            assert_eq!(fault(&frame[..len]), Fault::Truncated, "{len} bytes");
        }
    }
}

#[test]
fn what_is_wrong_has_its_own_fault() {
    let good = compress(b"some content", 3, true);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = good.clone();
        change(&mut frame);
        fault(&frame)
    };
    assert_eq!(with(&|f| *f.last_mut().unwrap() ^= 1), Fault::Checksum);
    assert_eq!(with(&|f| f.push(0)), Fault::TrailingData);
    assert_eq!(with(&|f| f.extend(*b"(")), Fault::Truncated);
    assert_eq!(with(&|f| f[4] |= 8), Fault::Unsupported);
    assert_eq!(with(&|f| f[6] |= 6), Fault::Corrupted);
    assert_eq!(with(&|f| f[5] += 1), Fault::Corrupted);
    assert_eq!(with(&|f| f[5] -= 1), Fault::Corrupted);
    assert_eq!(fault(b"\x1F\x8B\x08\0\0\0"), Fault::Format);
    assert_eq!(
        fault(&[0x27, 0xB5, 0x2F, 0xFD, 0, 0, 0]),
        Fault::Unsupported
    );
    let mut huge = HEADER;
    huge[5] = 31 << 3;
    assert_eq!(fault(&[&huge[..], &[1, 0, 0]].concat()), Fault::WindowLimit);
    let dict = [0x28, 0xB5, 0x2F, 0xFD, 0x21, 7, 0, 1, 0, 0];
    assert_eq!(fault(&dict), Fault::Dictionary);
}

#[test]
fn a_block_larger_than_the_window_is_refused_in_every_form() {
    let mut header = HEADER;
    header[5] = 0; // 1 KiB
    for (kind, body) in [(0, vec![1; 1025]), (1, vec![1]), (2, vec![1; 1025])] {
        let frame = [&header[..], &block(kind, 1025, true, &body)].concat();
        assert_eq!(fault(&frame), Fault::Corrupted, "block type {kind}");
    }
}

// libzstd's single call takes it, its stream and the zstd tool do not. One
// answer for all of ours: that of the stream.
#[test]
fn an_empty_run_stored_in_more_than_its_window_is_refused() {
    let frame = [0x28, 0xB5, 0x2F, 0xFD, 0x20, 0, 3, 0, 0, 0];
    assert_eq!(fault(&frame), Fault::Corrupted);
}

#[test]
fn an_empty_compressed_block_is_no_content() {
    let frame = [
        &HEADER[..],
        &block(2, 0, false, b""),
        &block(0, 2, true, b"ok"),
    ]
    .concat();
    assert_eq!(decompress(&frame, limits(None)).unwrap(), b"ok");
}

#[test]
fn a_million_empty_frames_and_blocks_are_linear() {
    let empty = compress(b"", 3, false);
    let input = empty.repeat(1_000_000);
    assert_eq!(decompress(&input, limits(None)), Ok(vec![]));
    let mut frame = HEADER.to_vec();
    frame.extend([0, 0, 0].repeat(3_000_000));
    frame.extend([1, 0, 0]);
    assert_eq!(decompress(&frame, limits(None)), Ok(vec![]));
}

#[test]
fn an_interrupt_comes_between_steps_and_the_work_goes_on() {
    let text = mixture(5 << 20, 4);
    for frame in [compress(&text, 3, true), streamed(&text)] {
        let mut walk = InputWalk::new(limits(None));
        assert!(walk.step(&frame, 1000).unwrap());
        let totals = walk.into_totals();
        let plan = Plan::new(frame.len(), totals, limits(None)).unwrap();
        let mut out = vec![MaybeUninit::new(0_u8); plan.capacity];
        let mut decoder = Decoder::new(&frame, plan);
        let mut steps = 0;
        while decoder.run(&mut out, &Always).unwrap() != Progress::Done {
            steps += 1;
            assert!(decoder.produced() <= steps * (128 << 10));
        }
        assert!(steps >= 40, "{steps} steps");
        // SAFETY: all bytes were set when the buffer was made.
        let content: Vec<u8> = out
            .iter()
            .map(|byte| unsafe { byte.assume_init() })
            .collect();
        assert!(content[..decoder.produced()] == text);
    }
}

/// The standing check of the pool: hostile data decoded by a context full of
/// other data must give what a fresh one gives. If this ever differs, contexts
/// must not be reused.
#[test]
fn a_dirtied_context_gives_what_a_fresh_one_gives() {
    let secret = noise(400_000, 99);
    let marked: Vec<u8> = secret.iter().map(|b| b'A' + b % 3).collect();
    let dirt = compress(&marked, 19, false);
    let mut inputs = Vec::new();
    for len in [40, 700, 5_000, 70_000, 200_000] {
        let frame = compress(&mixture(len, len as u64), 3, false);
        for turn in 0..200_u64 {
            let mut hostile = frame.clone();
            for flip in noise(6, turn * 31 + len as u64 + 1).chunks(2) {
                let at = usize::from(flip[0]) * 251 % hostile.len();
                hostile[at] ^= flip[1];
            }
            inputs.push(hostile);
        }
    }
    let mut dirtied = zstd_safe::DCtx::create();
    let mut decoded = 0;
    for input in &inputs {
        let mut out = Vec::with_capacity(1 << 20);
        dirtied.decompress(&mut out, &dirt).unwrap();
        out.clear();
        let result = dirtied.decompress(&mut out, input).map(|_| out);
        decoded += usize::from(result.is_ok());
        assert!(result.ok() == decode_in_zeroed_memory(input));
    }
    assert!(
        decoded > 20,
        "only {decoded} hostile inputs decode: the check checks nothing"
    );
}

/// Decodes with a context that has never held other data.
fn decode_in_zeroed_memory(input: &[u8]) -> Option<Vec<u8>> {
    unsafe extern "C" fn alloc(_: *mut c_void, size: usize) -> *mut c_void {
        // SAFETY: calloc has no preconditions.
        unsafe { libc::calloc(1, size) }
    }
    unsafe extern "C" fn free(_: *mut c_void, address: *mut c_void) {
        // SAFETY: what `alloc` gave, or null.
        unsafe { libc::free(address) }
    }
    let zeroed = zstd_sys::ZSTD_customMem {
        customAlloc: Some(alloc),
        customFree: Some(free),
        opaque: std::ptr::null_mut(),
    };
    let mut out = vec![0; 1 << 20];
    // SAFETY: a context of our own, and two live slices.
    let size = unsafe {
        let context = zstd_sys::ZSTD_createDCtx_advanced(zeroed);
        let size = zstd_sys::ZSTD_decompressDCtx(
            context,
            out.as_mut_ptr().cast(),
            out.len(),
            input.as_ptr().cast(),
            input.len(),
        );
        zstd_sys::ZSTD_freeDCtx(context);
        size
    };
    out.get(..size).map(<[u8]>::to_vec)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damage_is_an_error_or_an_answer_and_agrees_with_libzstd(
        len in 0_usize..400_000,
        level in -3_i32..6,
        known in any::<bool>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let text = mixture(len, len as u64);
        let mut frame = if known { compress(&text, level, true) } else { streamed(&text) };
        for (at, byte) in flips {
            let at = at.index(frame.len());
            frame[at] ^= byte;
        }
        let ours = decompress(&frame, limits(Some(64 << 20)));
        let theirs = libzstd_streaming(&frame);
        match (ours, theirs) {
            (Ok(ours), Some(theirs)) => prop_assert!(ours == theirs),
            // Our limit on the window is exact, libzstd's has a byte more.
            (Err(_), None) | (Err(Error::WindowLimit { .. }), Some(_)) => {}
            (ours, theirs) => prop_assert!(
                false,
                "ours: {:?}, libzstd: {:?} bytes",
                ours.map(|out| out.len()),
                theirs.map(|out| out.len())
            ),
        }
    }
}

/// Decodes all frames with libzstd's own streaming decoder, or not at all.
fn libzstd_streaming(input: &[u8]) -> Option<Vec<u8>> {
    let mut context = zstd_safe::DCtx::create();
    context.init().ok()?;
    let mut source = zstd_safe::InBuffer::around(input);
    let mut out = Vec::new();
    let mut piece = Vec::with_capacity(256 << 10);
    loop {
        piece.clear();
        let mut sink = zstd_safe::OutBuffer::around(&mut piece);
        let wanted = context.decompress_stream(&mut sink, &mut source).ok()?;
        let full = sink.pos() == sink.capacity();
        out.extend_from_slice(&piece);
        if source.pos() == input.len() && !full {
            return (wanted == 0).then_some(out);
        }
    }
}
