//! One-shot encoding: the bytes are those of `ZSTD_compress2`.

mod support;

use support::{compress, mixture, noise};

fn reference(input: &[u8], level: i32, checksum: bool) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context
        .set_parameter(zstd_safe::CParameter::CompressionLevel(level))
        .unwrap();
    context
        .set_parameter(zstd_safe::CParameter::ChecksumFlag(checksum))
        .unwrap();
    let mut out = Vec::with_capacity(zstd_safe::compress_bound(input.len()));
    context.compress2(&mut out, input).unwrap();
    out
}

#[test]
fn steps_make_the_bytes_of_one_call() {
    let text = mixture(3 << 20, 7);
    let lengths = [
        0,
        1,
        100,
        131_071,
        131_072,
        131_073,
        262_144,
        262_145,
        700_001,
        1 << 20,
        3 << 20,
    ];
    for level in [-7, -1, 1, 3, 5, 9, 13, 15, 19] {
        for len in lengths {
            if level > 9 && len > 800_000 {
                continue;
            }
            let input = &text[..len];
            // Not assert_eq!: a failure would print megabytes.
            assert!(
                compress(input, level, len % 2 == 0) == reference(input, level, len % 2 == 0),
                "level {level}, {len} bytes"
            );
        }
    }
}

#[test]
fn noise_and_runs_make_the_same_bytes_too() {
    for input in [noise(1_000_000, 3), vec![7; 2_000_000], Vec::new()] {
        for level in [1, 3, 19] {
            assert!(compress(&input, level, true) == reference(&input, level, true));
        }
    }
}
