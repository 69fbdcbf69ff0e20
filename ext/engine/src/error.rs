//! What can be wrong with an input, and where. Knows no Ruby: the binding maps
//! each [`Fault`] to one class.

use thiserror::Error;

/// The kind of a fault: one for each class of error that a caller may want to
/// tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The input is not zstd data.
    Format,
    /// The input is zstd data of a kind that is not read here.
    Unsupported,
    /// The input ends inside a frame, or before the first one.
    Truncated,
    /// Bytes follow the last frame.
    TrailingData,
    /// The frame contradicts itself or the format.
    Corrupted,
    /// The content does not match its checksum.
    Checksum,
    /// The frame wants a larger window than is allowed.
    WindowLimit,
    /// The content is larger than is allowed.
    OutputLimit,
    /// The frame needs a dictionary that was not given.
    Dictionary,
    /// An allocation failed.
    Memory,
    /// A parameter is out of its range.
    Parameter,
    /// A compression was given more or fewer bytes than were promised.
    PledgedSize,
    /// libzstd reported something that no honest use of it can cause.
    Internal,
}

impl Fault {
    /// The name of the fault, for programs.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Unsupported => "unsupported",
            Self::Truncated => "truncated",
            Self::TrailingData => "trailing_data",
            Self::Corrupted => "corrupted",
            Self::Checksum => "checksum",
            Self::WindowLimit => "window_limit",
            Self::OutputLimit => "output_limit",
            Self::Dictionary => "dictionary",
            Self::Memory => "memory",
            Self::Parameter => "parameter",
            Self::PledgedSize => "pledged_size",
            Self::Internal => "internal",
        }
    }
}

/// What went wrong, with which bytes, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// See [`Fault::Format`].
    #[error("not zstd data: byte {offset} should start a frame, but this looks like {looks_like}")]
    Format {
        /// Where a frame should have started.
        offset: usize,
        /// What the bytes look like.
        looks_like: &'static str,
    },
    /// See [`Fault::Unsupported`].
    #[error("unsupported zstd data at byte {offset}: {what}")]
    Unsupported {
        /// Where the frame starts.
        offset: usize,
        /// Which feature.
        what: &'static str,
    },
    /// The input has no bytes at all.
    #[error(
        "truncated zstd data: the input is empty, and even empty content is a frame of 9 bytes"
    )]
    Empty,
    /// See [`Fault::Truncated`].
    #[error(
        "truncated zstd data: the frame at byte {frame} is cut in its {part}; the input ends at byte {len}"
    )]
    Truncated {
        /// Where the frame starts.
        frame: usize,
        /// Where in the frame the input ends.
        part: &'static str,
        /// The length of the input.
        len: usize,
    },
    /// See [`Fault::TrailingData`].
    #[error(
        "{count} bytes after the last zstd frame: it ends at byte {offset}, and what follows looks like {looks_like}"
    )]
    TrailingData {
        /// Where the last frame ends.
        offset: usize,
        /// How many bytes follow.
        count: usize,
        /// What they look like.
        looks_like: &'static str,
    },
    /// See [`Fault::Corrupted`].
    #[error("corrupted zstd data: the frame at byte {frame} {what}")]
    Corrupted {
        /// Where the frame starts.
        frame: usize,
        /// What contradicts what.
        what: String,
    },
    /// See [`Fault::Checksum`].
    #[error("wrong checksum: the content of the frame at byte {frame} is not what was compressed")]
    Checksum {
        /// Where the frame starts.
        frame: usize,
    },
    /// See [`Fault::WindowLimit`].
    #[error(
        "the frame at byte {frame} needs a window of {window} bytes, over the limit of {limit} (window_log_max: {log}); raise window_log_max (at most 31) if you trust the sender"
    )]
    WindowLimit {
        /// Where the frame starts.
        frame: usize,
        /// The window that its header asks for, in bytes.
        window: u64,
        /// The largest window allowed, in bytes.
        limit: u64,
        /// The same limit as a power of two.
        log: i32,
    },
    /// See [`Fault::OutputLimit`]: refused from the header alone.
    #[error(
        "the content is {declared} bytes by its frame headers, over max_output_size: {limit}; nothing was decoded"
    )]
    DeclaredOverLimit {
        /// The sum of the content sizes declared.
        declared: u64,
        /// The largest output allowed, in bytes.
        limit: u64,
    },
    /// See [`Fault::OutputLimit`]: found while decoding.
    #[error("the content is over max_output_size: {limit} bytes; decoding stopped there")]
    OutputOverLimit {
        /// The largest output allowed, in bytes.
        limit: u64,
    },
    /// See [`Fault::Dictionary`].
    #[error("the frame at byte {frame} needs the dictionary with id {wanted}, and {given}")]
    Dictionary {
        /// Where the frame starts.
        frame: usize,
        /// The id in the frame's header.
        wanted: u32,
        /// What there was instead.
        given: &'static str,
    },
    /// See [`Fault::Memory`].
    #[error("out of memory for {what}")]
    Memory {
        /// What the memory was for.
        what: &'static str,
    },
    /// See [`Fault::Parameter`].
    #[error("{name}: {value} is out of range, it can be {min} to {max}")]
    Parameter {
        /// The name of the parameter.
        name: &'static str,
        /// What was asked for.
        value: i64,
        /// The least value allowed.
        min: i64,
        /// The largest value allowed.
        max: i64,
    },
    /// See [`Fault::PledgedSize`].
    #[error("pledged_size: {pledged} bytes were promised, but {given} given")]
    PledgedSize {
        /// How many bytes were promised.
        pledged: u64,
        /// How many there are, at least.
        given: u64,
    },
    /// See [`Fault::Internal`].
    #[error(
        "libzstd refused to go on: {name} (code {code}); this is a fault of zstd_rb, please report it"
    )]
    Internal {
        /// libzstd's own code.
        code: u32,
        /// libzstd's own words.
        name: &'static str,
    },
}

impl Error {
    /// The kind of this error.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Format { .. } => Fault::Format,
            Self::Unsupported { .. } => Fault::Unsupported,
            Self::Empty | Self::Truncated { .. } => Fault::Truncated,
            Self::TrailingData { .. } => Fault::TrailingData,
            Self::Corrupted { .. } => Fault::Corrupted,
            Self::Checksum { .. } => Fault::Checksum,
            Self::WindowLimit { .. } => Fault::WindowLimit,
            Self::DeclaredOverLimit { .. } | Self::OutputOverLimit { .. } => Fault::OutputLimit,
            Self::Dictionary { .. } => Fault::Dictionary,
            Self::Memory { .. } => Fault::Memory,
            Self::Parameter { .. } => Fault::Parameter,
            Self::PledgedSize { .. } => Fault::PledgedSize,
            Self::Internal { .. } => Fault::Internal,
        }
    }

    /// The same error in an input of which `before` bytes came earlier.
    pub(crate) fn shifted(mut self, before: u64) -> Self {
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        if let Self::Format { offset, .. }
        | Self::Unsupported { offset, .. }
        | Self::TrailingData { offset, .. }
        | Self::Truncated { frame: offset, .. }
        | Self::Corrupted { frame: offset, .. }
        | Self::Checksum { frame: offset }
        | Self::WindowLimit { frame: offset, .. }
        | Self::Dictionary { frame: offset, .. } = &mut self
        {
            *offset = offset.saturating_add(before);
        }
        if let Self::Truncated { len, .. } = &mut self {
            *len = len.saturating_add(before);
        }
        self
    }

    pub(crate) fn holds_less(frame: usize) -> Self {
        Self::corrupted(frame, "holds less content than its header declares")
    }

    pub(crate) fn corrupted(frame: usize, what: impl Into<String>) -> Self {
        Self::Corrupted {
            frame,
            what: what.into(),
        }
    }
}
