//! libzstd's contexts: made, kept for the next call, freed.
//!
//! A pool is a row of slots that are taken and filled by one atomic exchange
//! each. No lock: nothing to wait for, nothing that a fork can leave locked,
//! and it works with the GVL and without. Bounded in count and in bytes: many
//! slots for small contexts, few for large ones.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use zstd_sys::{
    ZSTD_CCtx, ZSTD_DCtx, ZSTD_ResetDirective, ZSTD_cParameter, ZSTD_customMem, ZSTD_dParameter,
};

use crate::error::Error;
use crate::libzstd::Failure;

/// How many small contexts of one kind wait for reuse, and how large they are
/// at most: level 3 on inputs of any size, and all that decompress.
const SMALL_SLOTS: usize = 12;
const SMALL_BYTES_MAX: usize = 4 << 20;
/// Likewise for large ones: level 9 on large inputs, not level 19 (80 MB).
const LARGE_SLOTS: usize = 2;
const LARGE_BYTES_MAX: usize = 24 << 20;

static GENERATION: AtomicU32 = AtomicU32::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static COMPRESS: Pool<ZSTD_CCtx> = Pool::new();
static DECOMPRESS: Pool<ZSTD_DCtx> = Pool::new();

/// How many contexts exist, in use or in the pool.
pub fn live_contexts() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// How many contexts wait in the pool.
pub fn pooled_contexts() -> usize {
    COMPRESS.count() + DECOMPRESS.count()
}

/// An object of libzstd that can be pooled.
trait Handle {
    /// # Safety
    /// `handle` is live, and nothing uses it any more.
    unsafe fn free(handle: *mut Self);
    /// # Safety
    /// `handle` is live, and no other thread uses it.
    unsafe fn size(handle: *mut Self) -> usize;
}

impl Handle for ZSTD_CCtx {
    unsafe fn free(handle: *mut Self) {
        // SAFETY: the caller's promise is the one that libzstd asks for. Pooled
        // contexts have no workers, so this does not wait.
        unsafe { zstd_sys::ZSTD_freeCCtx(handle) };
    }

    unsafe fn size(handle: *mut Self) -> usize {
        // SAFETY: reads fields of a live context, as the caller promises.
        unsafe { zstd_sys::ZSTD_sizeof_CCtx(handle) }
    }
}

impl Handle for ZSTD_DCtx {
    unsafe fn free(handle: *mut Self) {
        // SAFETY: the caller's promise is the one that libzstd asks for.
        unsafe { zstd_sys::ZSTD_freeDCtx(handle) };
    }

    unsafe fn size(handle: *mut Self) -> usize {
        // SAFETY: reads fields of a live context, as the caller promises.
        unsafe { zstd_sys::ZSTD_sizeof_DCtx(handle) }
    }
}

/// A context that this value alone owns.
struct Owned<H: Handle> {
    handle: NonNull<H>,
    owns: PhantomData<H>,
}

// SAFETY: a context is plain memory without ties to a thread; `Owned` is its
// only owner and hands it out for `&mut self` alone.
unsafe impl<H: Handle> Send for Owned<H> {}

impl<H: Handle> Owned<H> {
    fn new(handle: *mut H, what: &'static str) -> Result<Self, Error> {
        let handle = NonNull::new(handle).ok_or(Error::Memory { what })?;
        LIVE.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            handle,
            owns: PhantomData,
        })
    }

    fn as_ptr(&mut self) -> *mut H {
        self.handle.as_ptr()
    }

    fn size(&mut self) -> usize {
        // SAFETY: this value owns the live handle alone.
        unsafe { H::size(self.handle.as_ptr()) }
    }
}

impl<H: Handle> Drop for Owned<H> {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: this value owned the live handle alone, and ends here.
        unsafe { H::free(self.handle.as_ptr()) };
    }
}

struct Pool<H> {
    small: [AtomicPtr<H>; SMALL_SLOTS],
    large: [AtomicPtr<H>; LARGE_SLOTS],
    forked: AtomicBool,
}

impl<H: Handle> Pool<H> {
    const fn new() -> Self {
        Self {
            small: [const { AtomicPtr::new(ptr::null_mut()) }; SMALL_SLOTS],
            large: [const { AtomicPtr::new(ptr::null_mut()) }; LARGE_SLOTS],
            forked: AtomicBool::new(false),
        }
    }

    fn slots(&self) -> impl Iterator<Item = &AtomicPtr<H>> {
        self.small.iter().chain(&self.large)
    }

    fn take(&self) -> Option<Owned<H>> {
        if self.forked.load(Ordering::Relaxed) && self.forked.swap(false, Ordering::Relaxed) {
            self.slots().for_each(|slot| drop(take_from(slot)));
        }
        self.slots().find_map(take_from)
    }

    fn give_back(&self, mut context: Owned<H>) {
        let size = context.size();
        let slots: &[AtomicPtr<H>] = if size <= SMALL_BYTES_MAX {
            &self.small
        } else if size <= LARGE_BYTES_MAX {
            &self.large
        } else {
            &[]
        };
        for slot in slots {
            match put_into(slot, context) {
                None => return,
                Some(refused) => context = refused,
            }
        }
    }

    fn count(&self) -> usize {
        self.slots()
            .filter(|slot| !slot.load(Ordering::Relaxed).is_null())
            .count()
    }
}

fn take_from<H: Handle>(slot: &AtomicPtr<H>) -> Option<Owned<H>> {
    if slot.load(Ordering::Relaxed).is_null() {
        return None;
    }
    // The exchange makes this thread the handle's only owner.
    let handle = NonNull::new(slot.swap(ptr::null_mut(), Ordering::Acquire))?;
    Some(Owned {
        handle,
        owns: PhantomData,
    })
}

/// Puts a context into an empty slot; gives it back where the slot is not.
fn put_into<H: Handle>(slot: &AtomicPtr<H>, context: Owned<H>) -> Option<Owned<H>> {
    let empty = slot.load(Ordering::Relaxed).is_null()
        && slot
            .compare_exchange(
                ptr::null_mut(),
                context.handle.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok();
    if !empty {
        return Some(context);
    }
    // The slot owns the handle now.
    std::mem::forget(context);
    None
}

/// Makes a forked child start with empty pools. Called once, at load.
pub fn watch_forks() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        #[cfg(unix)]
        // SAFETY: the handler only stores to atomics, which is allowed in the
        // child of a process with threads.
        unsafe {
            libc::pthread_atfork(None, None, Some(mark_forked));
        }
    });
}

/// How many forks lie between this process and the one that loaded the code:
/// work that another thread was at in the parent will never be done here.
pub fn fork_generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

#[cfg(unix)]
unsafe extern "C" fn mark_forked() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    COMPRESS.forked.store(true, Ordering::Relaxed);
    DECOMPRESS.forked.store(true, Ordering::Relaxed);
}

/// A context to compress with.
pub(crate) struct CompressContext(Owned<ZSTD_CCtx>);

impl CompressContext {
    /// One from the pool, or a new one, with default parameters.
    pub(crate) fn take() -> Result<Self, Error> {
        let mut context = match COMPRESS.take() {
            Some(context) => context,
            None => Owned::new(
                // SAFETY: has no preconditions; null is checked for.
                unsafe { zstd_sys::ZSTD_createCCtx() },
                "a compression context",
            )?,
        };
        let reset = ZSTD_ResetDirective::ZSTD_reset_session_and_parameters;
        // SAFETY: the context is live and this thread's alone.
        let ret = unsafe { zstd_sys::ZSTD_CCtx_reset(context.as_ptr(), reset) };
        Failure::check(ret).map_err(Failure::while_encoding)?;
        Ok(Self(context))
    }

    pub(crate) fn set(&mut self, name: ZSTD_cParameter, value: i32) -> Result<(), Failure> {
        // SAFETY: the context is live and this thread's alone.
        let ret = unsafe { zstd_sys::ZSTD_CCtx_setParameter(self.as_ptr(), name, value) };
        Failure::check(ret).map(drop)
    }

    pub(crate) fn as_ptr(&mut self) -> *mut ZSTD_CCtx {
        self.0.as_ptr()
    }

    /// How much memory it holds, in bytes.
    pub(crate) fn size(&mut self) -> usize {
        self.0.size()
    }

    /// Keeps the context for another call, unless it is too large. Contexts
    /// from a call that failed are dropped instead.
    pub(crate) fn give_back(self) {
        COMPRESS.give_back(self.0);
    }
}

/// A context for whole frames in one call (`ZSTD_decompressDCtx` only, which
/// is why it may be pooled: see [`StepContext`]).
pub(crate) struct FrameContext(Owned<ZSTD_DCtx>);

impl FrameContext {
    pub(crate) fn take() -> Result<Self, Error> {
        match DECOMPRESS.take() {
            Some(context) => Ok(Self(context)),
            None => Owned::new(
                // SAFETY: has no preconditions; null is checked for.
                unsafe { zstd_sys::ZSTD_createDCtx() },
                "a decompression context",
            )
            .map(Self),
        }
    }

    pub(crate) fn as_ptr(&mut self) -> *mut ZSTD_DCtx {
        self.0.as_ptr()
    }

    pub(crate) fn give_back(self) {
        DECOMPRESS.give_back(self.0);
    }
}

/// A context for decoding in steps (`ZSTD_decompressStream`).
///
/// Until libzstd 1.6.0, crafted data can make a streaming context give out
/// what its inner literals buffer held before (CVE-2026-124851). So such a
/// context starts from zeroed memory and never sees a second input.
pub(crate) struct StepContext(Owned<ZSTD_DCtx>);

impl StepContext {
    pub(crate) fn new() -> Result<Self, Error> {
        let zeroed = ZSTD_customMem {
            customAlloc: Some(alloc_zeroed),
            customFree: Some(free_zeroed),
            opaque: ptr::null_mut(),
        };
        Owned::new(
            // SAFETY: the two functions are a matching pair that lives as long
            // as the program; null is checked for.
            unsafe { zstd_sys::ZSTD_createDCtx_advanced(zeroed) },
            "a decompression context",
        )
        .map(Self)
    }

    pub(crate) fn set(&mut self, name: ZSTD_dParameter, value: i32) -> Result<(), Failure> {
        // SAFETY: the context is live and this thread's alone.
        let ret = unsafe { zstd_sys::ZSTD_DCtx_setParameter(self.as_ptr(), name, value) };
        Failure::check(ret).map(drop)
    }

    pub(crate) fn as_ptr(&mut self) -> *mut ZSTD_DCtx {
        self.0.as_ptr()
    }

    /// How much memory it holds, in bytes.
    pub(crate) fn size(&mut self) -> usize {
        self.0.size()
    }
}

unsafe extern "C" fn alloc_zeroed(_: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: calloc has no preconditions.
    unsafe { libc::calloc(1, size) }
}

unsafe extern "C" fn free_zeroed(_: *mut c_void, address: *mut c_void) {
    // SAFETY: libzstd frees what `alloc_zeroed` gave it, once, or null.
    unsafe { libc::free(address) };
}
