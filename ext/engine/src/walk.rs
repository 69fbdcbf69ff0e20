//! The walk: frame borders, truncation and bounds of the output, from headers
//! alone, before anything is allocated or decoded (RFC 8878, section 3.1.1.2).
//! Safe code only. It costs nanoseconds per block.

use crate::error::Error;
use crate::frame::{DataHeader, Header, SKIPPABLE_HEADER_SIZE, header};
use crate::params::DecompressLimits;

const BLOCK_HEADER_SIZE: usize = 3;
const CHECKSUM_SIZE: usize = 4;

/// What the walk found out about one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Where the frame starts in the input.
    pub start: usize,
    /// Where the frame ends.
    pub end: usize,
    /// Its header; `None` for a skippable frame.
    pub header: Option<DataHeader>,
    /// The most content that its blocks can make; exact when the header names
    /// the size.
    pub bound: u64,
    /// Whether there is a block that libzstd's two decoders judge differently:
    /// an empty compressed one is no content in steps and damage in a single
    /// call, one stored in more bytes than its window the other way round. In
    /// steps it is then, as a stream decodes it.
    pub has_odd_block: bool,
}

impl Span {
    /// The size of the content where it is known before decoding.
    pub fn content_size(&self) -> Option<u64> {
        match &self.header {
            Some(header) => header.content_size,
            None => Some(0),
        }
    }
}

/// A walk over one frame, block header by block header. It stops after a given
/// number of blocks and goes on when asked, so that a hostile input of a
/// billion empty blocks cannot keep it.
#[derive(Debug, Clone)]
pub struct FrameWalk {
    start: usize,
    pos: usize,
    header: DataHeader,
    content: u64,
    has_odd_block: bool,
}

/// Where a walk stands after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walked {
    /// The frame is whole.
    Frame(Span),
    /// The budget ran out first.
    Paused,
}

impl FrameWalk {
    /// Starts at the frame at `start`: reads and judges its header.
    #[inline]
    pub fn begin(
        input: &[u8],
        start: usize,
        limits: &DecompressLimits,
    ) -> Result<Result<Self, Span>, Error> {
        match header(input, start)? {
            Header::Skippable { payload } => {
                let end = (start + SKIPPABLE_HEADER_SIZE)
                    .checked_add(payload)
                    .filter(|end| *end <= input.len())
                    .ok_or(Error::Truncated {
                        frame: start,
                        part: "skippable payload",
                        len: input.len(),
                    })?;
                Ok(Err(Span {
                    start,
                    end,
                    header: None,
                    bound: 0,
                    has_odd_block: false,
                }))
            }
            Header::Data(header) => {
                limits.check_header(&header, start)?;
                Ok(Ok(Self {
                    start,
                    pos: start + header.size,
                    header,
                    content: 0,
                    has_odd_block: false,
                }))
            }
        }
    }

    /// Walks on over at most `budget` blocks, and takes them off it.
    #[inline]
    pub fn step(&mut self, input: &[u8], budget: &mut usize) -> Result<Walked, Error> {
        let block_max = self.header.block_size_max();
        while *budget > 0 {
            *budget -= 1;
            let block = BlockHeader::read(input, self.start, self.pos)?;
            if block.content_max(block_max) > block_max {
                return Err(Error::corrupted(
                    self.start,
                    format!(
                        "has a block of more than {block_max} bytes at byte {}, the most its header allows",
                        self.pos
                    ),
                ));
            }
            let end = self.pos + BLOCK_HEADER_SIZE + block.stored;
            if end > input.len() {
                return Err(self.truncated(input, "block"));
            }
            self.content += block.content_max(block_max) as u64;
            self.has_odd_block |= block.is_empty_compressed() || block.stored > block_max;
            self.pos = end;
            if block.last {
                return self.finish(input).map(Walked::Frame);
            }
        }
        Ok(Walked::Paused)
    }

    fn finish(&self, input: &[u8]) -> Result<Span, Error> {
        let end = self.pos
            + if self.header.checksum {
                CHECKSUM_SIZE
            } else {
                0
            };
        if end > input.len() {
            return Err(self.truncated(input, "checksum"));
        }
        let bound = match self.header.content_size {
            Some(declared) if declared > self.content => {
                return Err(Error::corrupted(
                    self.start,
                    format!(
                        "declares {declared} bytes of content, but its blocks hold at most {}",
                        self.content
                    ),
                ));
            }
            Some(declared) => declared,
            None => self.content,
        };
        Ok(Span {
            start: self.start,
            end,
            header: Some(self.header),
            bound,
            has_odd_block: self.has_odd_block,
        })
    }

    fn truncated(&self, input: &[u8], part: &'static str) -> Error {
        Error::Truncated {
            frame: self.start,
            part,
            len: input.len(),
        }
    }
}

/// The header of a block (RFC 8878, 3.1.1.2).
struct BlockHeader {
    last: bool,
    compressed: bool,
    /// How many bytes of input follow the header.
    stored: usize,
    /// The size of the content, where the header alone tells it.
    content: Option<usize>,
}

impl BlockHeader {
    fn read(input: &[u8], frame: usize, pos: usize) -> Result<Self, Error> {
        let bytes = input[pos..]
            .first_chunk::<BLOCK_HEADER_SIZE>()
            .ok_or(Error::Truncated {
                frame,
                part: "block header",
                len: input.len(),
            })?;
        let field = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        let size = (field >> 3) as usize;
        let (stored, content) = match field >> 1 & 3 {
            0 => (size, Some(size)),
            1 => (1, Some(size)),
            2 => (size, (size == 0).then_some(0)),
            _ => {
                return Err(Error::corrupted(
                    frame,
                    format!("has a block of the reserved type at byte {pos}"),
                ));
            }
        };
        Ok(Self {
            last: field & 1 != 0,
            compressed: field >> 1 & 3 == 2,
            stored,
            content,
        })
    }

    fn is_empty_compressed(&self) -> bool {
        self.compressed && self.stored == 0
    }

    /// The most content that this block can make: of a compressed block all
    /// that is allowed, and at least what it takes up itself.
    fn content_max(&self, block_max: usize) -> usize {
        self.content.unwrap_or(block_max.max(self.stored))
    }
}

/// A walk over all frames of an input, in budgeted steps.
#[derive(Debug, Clone)]
pub struct InputWalk {
    limits: DecompressLimits,
    pos: usize,
    frame: Option<FrameWalk>,
    totals: Totals,
}

/// What the walk over a whole input found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// The first frame, so that an input of one frame is walked once.
    pub first: Option<Span>,
    /// How many frames there are, skippable ones included.
    pub frames: usize,
    /// How many blocks and skippable frames there are.
    pub blocks: usize,
    /// The most content that all frames can make.
    pub bound: u64,
    /// The part of `bound` that frame headers declare.
    pub declared: u64,
    /// Whether a frame does not name its content size.
    pub has_unknown_size: bool,
}

impl InputWalk {
    /// A walk that stands before the first frame.
    pub fn new(limits: DecompressLimits) -> Self {
        Self {
            limits,
            pos: 0,
            frame: None,
            totals: Totals::default(),
        }
    }

    /// What the walk has found out so far: all there is, once it is done.
    pub fn into_totals(self) -> Totals {
        self.totals
    }

    /// Walks on over at most `budget` blocks or skippable frames. Whether the
    /// walk is done.
    pub fn step(&mut self, input: &[u8], budget: usize) -> Result<bool, Error> {
        let mut left = budget;
        let done = self.walk(input, &mut left)?;
        self.totals.blocks += budget - left;
        Ok(done)
    }

    fn walk(&mut self, input: &[u8], budget: &mut usize) -> Result<bool, Error> {
        if input.is_empty() {
            return Err(Error::Empty);
        }
        while *budget > 0 {
            if self.pos == input.len() {
                return Ok(true);
            }
            let span = match self.frame.as_mut() {
                None => match FrameWalk::begin(input, self.pos, &self.limits)? {
                    Ok(walk) => {
                        self.frame = Some(walk);
                        continue;
                    }
                    Err(skippable) => {
                        *budget -= 1;
                        skippable
                    }
                },
                Some(walk) => match walk.step(input, budget)? {
                    Walked::Frame(span) => span,
                    Walked::Paused => return Ok(false),
                },
            };
            self.frame = None;
            self.count(span)?;
        }
        // The last block may have been the budget's last.
        Ok(self.frame.is_none() && self.pos == input.len())
    }

    fn count(&mut self, span: Span) -> Result<(), Error> {
        let totals = &mut self.totals;
        self.pos = span.end;
        totals.first.get_or_insert(span);
        totals.frames += 1;
        // At most 32,768 times the input: no overflow.
        totals.bound += span.bound;
        match span.content_size() {
            Some(size) => totals.declared += size,
            None => totals.has_unknown_size = true,
        }
        match self.limits.max_output_size {
            Some(limit) if totals.declared > limit => Err(Error::DeclaredOverLimit {
                declared: totals.declared,
                limit,
            }),
            _ => Ok(()),
        }
    }
}
