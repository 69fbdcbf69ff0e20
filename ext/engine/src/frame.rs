//! Frame headers (RFC 8878, section 3.1.1), and what bytes that begin no frame
//! look like. Safe code only, and nothing here allocates.

use crate::error::Error;

/// The most content that one block holds (RFC 8878, 3.1.1.2.4).
pub const BLOCK_SIZE_MAX: usize = 128 << 10;
/// The length of a skippable frame's header.
pub const SKIPPABLE_HEADER_SIZE: usize = 8;

const MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();
const SKIPPABLE_MAGIC: [u8; 4] = 0x184D_2A50_u32.to_le_bytes();

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// A frame with content.
    Data(DataHeader),
    /// A skippable frame: `payload` bytes to step over.
    Skippable {
        /// The length of the payload.
        payload: usize,
    },
}

/// The header of a frame with content (RFC 8878, 3.1.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// The length of the header, magic number included.
    pub size: usize,
    /// The size of the content, where the header names it.
    pub content_size: Option<u64>,
    /// The window that a decoder needs, in bytes.
    pub window_size: u64,
    /// The id of the dictionary used, 0 for none or an unnamed one.
    pub dict_id: u32,
    /// Whether a checksum ends the frame.
    pub checksum: bool,
}

impl DataHeader {
    /// The most content that one block of this frame holds.
    pub fn block_size_max(&self) -> usize {
        usize::try_from(self.window_size)
            .map_or(BLOCK_SIZE_MAX, |window| window.min(BLOCK_SIZE_MAX))
    }
}

/// Reads the header of the frame that starts at `start`, which is not the end
/// of the input.
#[inline]
pub fn header(input: &[u8], start: usize) -> Result<Header, Error> {
    let frame = &input[start..];
    let truncated = |part| Error::Truncated {
        frame: start,
        part,
        len: input.len(),
    };
    let Some(magic) = frame.first_chunk::<4>() else {
        return Err(if could_be_magic(frame) {
            truncated("magic number")
        } else {
            not_a_frame(input, start)
        });
    };
    if is_skippable(*magic) {
        let size = frame[4..]
            .first_chunk::<4>()
            .ok_or_else(|| truncated("header"))?;
        return Ok(Header::Skippable {
            payload: u32::from_le_bytes(*size) as usize,
        });
    }
    if *magic != MAGIC {
        return Err(not_a_frame(input, start));
    }
    let descriptor = *frame.get(4).ok_or_else(|| truncated("header"))?;
    let single_segment = descriptor & 0x20 != 0;
    let window_len = usize::from(!single_segment);
    let dict_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_len = match descriptor >> 6 {
        0 => usize::from(single_segment),
        1 => 2,
        2 => 4,
        _ => 8,
    };
    let size = 5 + window_len + dict_len + content_len;
    // libzstd wants the whole header before it judges any of it; a cut header
    // is truncated here too, whatever its reserved bit says.
    let fields = frame.get(5..size).ok_or_else(|| truncated("header"))?;
    if descriptor & 0x08 != 0 {
        return Err(Error::Unsupported {
            offset: start,
            what: "the reserved bit of the frame header is set, by a newer format or by damage",
        });
    }
    let (window_field, fields) = fields.split_at(window_len);
    let (dict_field, content_field) = fields.split_at(dict_len);
    let content_size = match (content_field.len(), little_endian(content_field)) {
        (0, _) | (8, u64::MAX) => None,
        (2, size) => Some(size + 256),
        (_, size) => Some(size),
    };
    let window_size = match window_field.first() {
        // 10 bits at least, 41 at most, and eighths on top.
        Some(byte) => {
            let base = 1_u64 << (10 + (byte >> 3));
            base + (base >> 3) * u64::from(byte & 7)
        }
        None => content_size.unwrap_or(u64::MAX),
    };
    Ok(Header::Data(DataHeader {
        size,
        content_size,
        window_size,
        dict_id: u32::try_from(little_endian(dict_field)).unwrap_or(u32::MAX),
        checksum: descriptor & 0x04 != 0,
    }))
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn is_skippable(magic: [u8; 4]) -> bool {
    magic[0] & 0xF0 == SKIPPABLE_MAGIC[0] && magic[1..] == SKIPPABLE_MAGIC[1..]
}

fn could_be_magic(bytes: &[u8]) -> bool {
    MAGIC.starts_with(bytes)
        || bytes
            .first()
            .is_none_or(|first| first & 0xF0 == SKIPPABLE_MAGIC[0])
            && SKIPPABLE_MAGIC[1..].starts_with(bytes.get(1..).unwrap_or_default())
}

/// The error for bytes at `start` that begin no frame.
fn not_a_frame(input: &[u8], start: usize) -> Error {
    let bytes = &input[start..];
    let looks_like = looks_like(bytes);
    if start > 0 {
        return Error::TrailingData {
            offset: start,
            count: bytes.len(),
            looks_like,
        };
    }
    if looks_like == LEGACY {
        return Error::Unsupported {
            offset: start,
            what: "a frame of the legacy formats v0.1 to v0.7, which zstd_rb never reads; \
                   recompress it with an old zstd command",
        };
    }
    Error::Format {
        offset: start,
        looks_like,
    }
}

const LEGACY: &str = "a legacy zstd frame";

fn looks_like(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x1F, 0x8B, ..] => "gzip",
        [b'B', b'Z', b'h', ..] => "bzip2",
        [0xFD, b'7', b'z', b'X', b'Z', ..] => "xz",
        [b'P', b'K', 3 | 5 | 7, ..] => "a zip archive",
        [0x04, 0x22, 0x4D, 0x18, ..] => "lz4",
        [0x37, 0xA4, 0x30, 0xEC, ..] => "a zstd dictionary, not a frame",
        [0x22..=0x27, 0xB5, 0x2F, 0xFD, ..] | [0xFD, 0x2F, 0xB5, 0x1E, ..] => LEGACY,
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => "zlib",
        _ if bytes.iter().take(64).all(|byte| *byte == 0) => "NUL bytes",
        _ if is_text(bytes) => "text",
        _ => "unknown binary data",
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(64)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character cut by our own 64 bytes is no argument against text.
        Err(error) if error.error_len().is_none() && head.len() < bytes.len() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty() && text.chars().all(|c| !c.is_control() || c.is_whitespace())
}
