//! Where the next block of a compression ends.
//!
//! `ZSTD_compress2` sees the whole input, and cuts a block of 128 KiB short
//! where the data changes its nature. Shown one block at a time it cannot, or
//! cuts elsewhere: the frame would be another. So the same decision is taken
//! here, by libzstd's own function, and libzstd is then shown just that block.

use std::ffi::c_void;

use zstd_sys::ZSTD_strategy;

use crate::frame::BLOCK_SIZE_MAX;

/// `ZSTD_SLIPBLOCK_WORKSPACESIZE` of `zstd_preSplit.h`, in words.
const WORKSPACE_WORDS: usize = 8208 / 8;

unsafe extern "C" {
    /// `zstd_preSplit.h` of libzstd 1.5.7. Internal to libzstd, which is linked
    /// in and pinned by Cargo.lock; a test compares the frames byte by byte.
    fn ZSTD_splitBlock(
        block: *const c_void,
        size: usize,
        level: std::ffi::c_int,
        workspace: *mut c_void,
        workspace_size: usize,
    ) -> usize;
}

/// Finds the ends of blocks as libzstd would.
pub(crate) struct BlockSplitter {
    level: i32,
    workspace: Box<[u64; WORKSPACE_WORDS]>,
}

impl BlockSplitter {
    /// A splitter for a compression of `len` bytes at `level`.
    pub(crate) fn new(level: i32, len: usize) -> Self {
        // SAFETY: a pure function of three numbers.
        let params = unsafe { zstd_sys::ZSTD_getCParams(level, len as u64, 0) };
        Self {
            level: effort(params.strategy),
            workspace: Box::new([0; WORKSPACE_WORDS]),
        }
    }

    /// The size of the block that `rest` starts with. `saved` is by how many
    /// bytes the blocks so far have shrunk: data that does not is never split.
    pub(crate) fn block_size(&mut self, rest: &[u8], saved: usize) -> usize {
        const SAVED_MIN: usize = 3;
        let Some(block) = rest.first_chunk::<BLOCK_SIZE_MAX>() else {
            return rest.len();
        };
        if saved < SAVED_MIN {
            return BLOCK_SIZE_MAX;
        }
        // SAFETY: `block` is the 128 KiB that the function wants, the level is
        // 0 to 4, and the workspace has its size and alignment.
        let size = unsafe {
            ZSTD_splitBlock(
                block.as_ptr().cast::<c_void>(),
                block.len(),
                self.level,
                self.workspace.as_mut_ptr().cast::<c_void>(),
                size_of_val(&*self.workspace),
            )
        };
        size.clamp(1, BLOCK_SIZE_MAX)
    }
}

/// How hard libzstd looks for a border: more with strategies that take longer
/// anyway (`ZSTD_optimalBlockSize` of `zstd_compress.c`).
fn effort(strategy: ZSTD_strategy) -> i32 {
    match strategy {
        ZSTD_strategy::ZSTD_fast => 0,
        ZSTD_strategy::ZSTD_dfast => 1,
        ZSTD_strategy::ZSTD_greedy | ZSTD_strategy::ZSTD_lazy => 2,
        ZSTD_strategy::ZSTD_lazy2 | ZSTD_strategy::ZSTD_btlazy2 => 3,
        ZSTD_strategy::ZSTD_btopt | ZSTD_strategy::ZSTD_btultra | ZSTD_strategy::ZSTD_btultra2 => 4,
    }
}
