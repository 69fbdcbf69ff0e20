//! Inputs and short ways for the engine's tests.
#![allow(dead_code)]

use std::mem::MaybeUninit;

use zstd_engine::decode::{Decoder, Plan};
use zstd_engine::encode::Encoder;
use zstd_engine::params::{CompressParams, DecompressLimits, compress_bound};
use zstd_engine::walk::InputWalk;
use zstd_engine::{Error, Never, Progress};

/// Repeatable noise.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(len)
    .collect()
}

/// Bytes that change their nature as real archives do: words, noise, runs.
pub fn mixture(len: usize, seed: u64) -> Vec<u8> {
    let words = noise(4096, seed);
    let mut out = Vec::with_capacity(len + 70_000);
    let mut turn = seed;
    while out.len() < len {
        turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        match turn >> 60 {
            0..=8 => {
                for step in 0..600_u32 {
                    let pick = turn.rotate_left(step % 61) % 400;
                    let at = usize::try_from(pick).unwrap() * 10;
                    let word: Vec<u8> = words[at..at + 3 + at % 7]
                        .iter()
                        .map(|b| b'a' + b % 26)
                        .collect();
                    out.extend_from_slice(&word);
                    out.push(b' ');
                }
            }
            9..=11 => out.extend(noise(9_000, turn)),
            12..=13 => out.extend(std::iter::repeat_n(0, 30_000)),
            _ => out.extend((0..20_000_u32).flat_map(|n| (n * 7 % 1000).to_le_bytes())),
        }
    }
    out.truncate(len);
    out
}

fn spare(out: &mut Vec<u8>) -> &mut [MaybeUninit<u8>] {
    assert!(out.is_empty());
    out.spare_capacity_mut()
}

/// Compresses as the gem does.
pub fn compress(input: &[u8], level: i32, checksum: bool) -> Vec<u8> {
    let mut params = CompressParams::default();
    params.set_level(level.into()).unwrap();
    params.checksum = checksum;
    let mut encoder = Encoder::new(input, params);
    let mut out = Vec::with_capacity(compress_bound(input.len()).unwrap());
    let progress = encoder.run(spare(&mut out), &Never).unwrap();
    assert_eq!(progress, Progress::Done);
    // SAFETY: the encoder has written this many bytes.
    unsafe { out.set_len(encoder.produced()) };
    out
}

/// Decompresses as the gem does, growing where it is asked to.
pub fn decompress(input: &[u8], limits: DecompressLimits) -> Result<Vec<u8>, Error> {
    decompress_counting(input, limits).map(|(out, _)| out)
}

/// The same, with the number of times that the output had to grow.
pub fn decompress_counting(
    input: &[u8],
    limits: DecompressLimits,
) -> Result<(Vec<u8>, usize), Error> {
    let mut walk = InputWalk::new(limits);
    while !walk.step(input, 100)? {}
    let plan = Plan::new(input.len(), walk.into_totals(), limits)?;
    let mut out: Vec<u8> = Vec::with_capacity(plan.capacity);
    let mut capacity = plan.capacity;
    let mut decoder = Decoder::new(input, plan);
    let mut growths = 0;
    loop {
        let room = &mut spare(&mut out)[..capacity];
        match decoder.run(room, &Never)? {
            Progress::Done => break,
            Progress::Interrupted => unreachable!("nobody asked"),
            Progress::NeedsRoom(needed) => {
                growths += 1;
                capacity = decoder.grown(capacity, needed);
                let mut larger = Vec::with_capacity(capacity);
                // SAFETY: the decoder has written this many bytes.
                unsafe { out.set_len(decoder.produced()) };
                larger.extend_from_slice(&out);
                larger.clear();
                out = larger;
            }
        }
    }
    // SAFETY: the decoder has written this many bytes.
    unsafe { out.set_len(decoder.produced()) };
    Ok((out, growths))
}
