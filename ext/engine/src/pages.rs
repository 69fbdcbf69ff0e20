//! First touch of large outputs. A page fault for each 4 KiB is what most of a
//! big decompression's time goes to; the kernel is faster when asked for many
//! pages at once. Linux only, and only a hint: every failure is ignored.

use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering};

/// Outputs smaller than this are left to ordinary page faults.
pub(crate) const LARGE_OUTPUT: usize = 4 << 20;

#[cfg(target_os = "linux")]
const STRIDE: usize = 4 << 20;
#[cfg(target_os = "linux")]
static HUGE: AtomicBool = AtomicBool::new(false);

/// Lets large outputs use transparent huge pages (Linux 6.18 and later: Ruby
/// turns them off for its process), or puts things back as they were. Returns
/// whether they are on now. It is a setting of the whole process.
#[cfg(target_os = "linux")]
pub fn set_huge_pages(on: bool) -> bool {
    const DISABLED: libc::c_int = 1;
    const EXCEPT_ADVISED: libc::c_int = 1 << 1;
    let (from, flags) = if on {
        (DISABLED, EXCEPT_ADVISED)
    } else {
        (DISABLED | EXCEPT_ADVISED, 0)
    };
    // A process that has not turned them off needs nothing, and gets nothing.
    if thp_disable(libc::PR_GET_THP_DISABLE, 0, 0) == from
        && thp_disable(libc::PR_SET_THP_DISABLE, DISABLED, flags) != 0
    {
        return !on;
    }
    HUGE.store(on, Ordering::Relaxed);
    on
}

/// Asks or sets how far this process goes without huge pages (prctl(2)).
#[cfg(target_os = "linux")]
fn thp_disable(option: libc::c_int, value: libc::c_int, flags: libc::c_int) -> libc::c_int {
    let unsigned = |number: libc::c_int| libc::c_ulong::from(number.unsigned_abs());
    let zero: libc::c_ulong = 0;
    // SAFETY: both options take integers only and touch no memory of ours; an
    // old kernel answers EINVAL.
    unsafe { libc::prctl(option, unsigned(value), unsigned(flags), zero, zero) }
}

/// Elsewhere there is no such setting.
#[cfg(not(target_os = "linux"))]
pub fn set_huge_pages(_on: bool) -> bool {
    false
}

/// Touches an output just ahead of its writer, 4 MiB at a time.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Up to where the output has been touched, as an address.
    #[cfg(target_os = "linux")]
    touched: usize,
}

impl Ahead {
    /// Makes sure that the pages just after `produced` are there, but none
    /// from the end of `out` on: `out` is exactly what will be written.
    #[cfg(target_os = "linux")]
    pub(crate) fn reach(&mut self, out: &mut [MaybeUninit<u8>], produced: usize) {
        const PAGE: usize = 4096;
        let start = out.as_mut_ptr() as usize;
        let end = (start + out.len()) & !(PAGE - 1);
        let writer = start + produced;
        if writer < self.touched || out.len() < LARGE_OUTPUT {
            return;
        }
        let from = writer.next_multiple_of(PAGE).max(self.touched);
        let to = end.min(from + STRIDE);
        if from >= to {
            self.touched = usize::MAX;
            return;
        }
        if HUGE.load(Ordering::Relaxed) && self.touched == 0 {
            // SAFETY: whole pages inside `out`, which is ours; the advice
            // changes how they are backed, not what they hold.
            unsafe { libc::madvise(from as *mut libc::c_void, end - from, libc::MADV_HUGEPAGE) };
        }
        // SAFETY: whole pages inside `out`, which is ours; populating writes
        // nothing. Kernels before 5.14 answer EINVAL.
        let ret = unsafe {
            libc::madvise(
                from as *mut libc::c_void,
                to - from,
                libc::MADV_POPULATE_WRITE,
            )
        };
        self.touched = if ret == 0 { to } else { usize::MAX };
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn reach(&mut self, _out: &mut [MaybeUninit<u8>], _produced: usize) {}
}
