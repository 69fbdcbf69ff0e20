//! Strings as bytes: the only place with raw pointers to Ruby's memory.
//!
//! An input is a frozen snapshot, an output a String that nobody else can see
//! yet. Both stay on this thread's machine stack while the GVL is away, which
//! keeps the collector from freeing and from moving them.

use std::ffi::c_long;
use std::mem::MaybeUninit;
use std::ptr;

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RString, Ruby, TryConvert, Value};
use rb_sys::VALUE;

/// The bytes of a String as they were when it was pinned.
pub struct PinnedInput {
    snapshot: VALUE,
    ptr: *const u8,
    len: usize,
}

impl PinnedInput {
    /// Pins `value`, or what its `to_str` returns. Costs nothing for a frozen
    /// String; another shares its bytes with the snapshot until someone
    /// changes it, and then gets new ones.
    pub fn new(value: Value) -> Result<Self, Error> {
        let string = RString::try_convert(value)?;
        let snapshot = protect(|| {
            let string = string.as_raw();
            // SAFETY: `string` is a String; what may raise runs under protect.
            // A locked one is copied: its bytes may change without the GVL.
            unsafe {
                if is_locked(string) {
                    let bytes = rb_sys::RSTRING_PTR(string);
                    rb_sys::rb_str_new(bytes, rb_sys::RSTRING_LEN(string))
                } else {
                    rb_sys::rb_str_new_frozen(string)
                }
            }
        })?;
        // SAFETY: the snapshot is a frozen String, or a copy that only we
        // know, so its bytes stay where and what they are as long as it lives,
        // which `drop` sees to.
        let (ptr, len) = unsafe {
            (
                rb_sys::RSTRING_PTR(snapshot).cast::<u8>(),
                rb_sys::RSTRING_LEN(snapshot),
            )
        };
        Ok(Self {
            snapshot,
            ptr,
            len: usize::try_from(len).unwrap_or(0),
        })
    }

    /// The bytes. They never change.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: pointer and length of a snapshot that lives at least as
        // long as `self`. The slice cannot outlive `self`.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

impl Drop for PinnedInput {
    fn drop(&mut self) {
        // The last use: until here the collector finds the snapshot on the
        // stack, where `self` is.
        rb_sys::rb_gc_guard!(self.snapshot);
    }
}

/// Whether a String is locked (`rb_str_locktmp`): then IO, or an `IO::Buffer`,
/// may be writing into it, and sharing its memory would share that.
///
/// # Safety
/// `string` is a live String.
unsafe fn is_locked(string: VALUE) -> bool {
    // STR_TMPLOCK of CRuby's string.c, which is FL_USER7. Were it another flag
    // some day, the price is a copy.
    const STR_TMPLOCK: VALUE = 1 << 19;
    // SAFETY: a String is an object on the heap, which starts with RBasic.
    let flags = unsafe { (*(string as *const rb_sys::RBasic)).flags };
    flags & STR_TMPLOCK != 0
}

/// A String that is being written, hidden from Ruby until it is finished.
pub struct OutputString {
    string: VALUE,
    capacity: usize,
}

impl OutputString {
    /// An output of exactly `len` bytes.
    pub fn with_len(ruby: &Ruby, len: usize) -> Result<Self, Error> {
        let size = c_len(ruby, len)?;
        // SAFETY: a null pointer makes a String of that length whose bytes are
        // not set; what may raise runs under protect.
        Self::hide(len, || unsafe { rb_sys::rb_str_new(ptr::null(), size) })
    }

    /// An output of at most `capacity` bytes, until it grows.
    pub fn with_capacity(ruby: &Ruby, capacity: usize) -> Result<Self, Error> {
        let size = c_len(ruby, capacity)?;
        // SAFETY: as above; the length is 0 until it is set.
        Self::hide(capacity, || unsafe { rb_sys::rb_str_buf_new(size) })
    }

    fn hide(capacity: usize, allocate: impl FnOnce() -> VALUE) -> Result<Self, Error> {
        // SAFETY: hides an object that was just made and that nobody has seen.
        let string = protect(|| unsafe { rb_sys::rb_obj_hide(allocate()) })?;
        Ok(Self { string, capacity })
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The memory to write to: the same at each call, until the output grows.
    pub fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the String is not shared, has this capacity, and cannot be
        // reached from Ruby; `&mut self` makes this its only view.
        unsafe {
            let start = rb_sys::RSTRING_PTR(self.string).cast_mut();
            std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), self.capacity)
        }
    }

    /// Makes room for `capacity` bytes and keeps the first `written`.
    pub fn grow(&mut self, ruby: &Ruby, written: usize, capacity: usize) -> Result<(), Error> {
        let written = c_len(ruby, written)?;
        let more = c_len(ruby, capacity)? - written;
        let string = self.string;
        protect(|| {
            // SAFETY: the first `written` bytes are set; what may raise runs
            // under protect.
            unsafe {
                rb_sys::rb_str_set_len(string, written);
                rb_sys::rb_str_modify_expand(string, more);
            }
            string
        })?;
        self.capacity = capacity;
        Ok(())
    }

    /// The finished String: its first `written` bytes, and no spare room.
    pub fn finish(self, ruby: &Ruby, written: usize) -> Result<RString, Error> {
        let len = c_len(ruby, written)?;
        let string = self.string;
        // SAFETY: `string` is a live String.
        let is_exact = unsafe { rb_sys::RSTRING_LEN(string) } == len && written == self.capacity;
        if !is_exact {
            protect(|| {
                // SAFETY: the first `written` bytes are set; what may raise
                // runs under protect.
                unsafe {
                    rb_sys::rb_str_set_len(string, len);
                    rb_sys::rb_str_resize(string, len)
                }
            })?;
        }
        // From here on the String is Ruby's.
        std::mem::forget(self);
        // SAFETY: gives a String its class back; cannot raise.
        unsafe { rb_sys::rb_obj_reveal(string, rb_sys::rb_cString) };
        Ok(string_of(string))
    }
}

impl Drop for OutputString {
    /// Frees the memory of an output that was given up: the next collection
    /// may be far, and hostile input must not pile up until then.
    fn drop(&mut self) {
        let string = self.string;
        // SAFETY: a live String that nobody else can see; what may raise runs
        // under protect, and making it smaller does not.
        let _ = protect(|| unsafe { rb_sys::rb_str_resize(string, 0) });
    }
}

/// A caller's own String that is being written. It is locked meanwhile: Ruby
/// code that would change it gets an error instead.
pub struct BufferString {
    string: VALUE,
    capacity: usize,
    locked: bool,
}

impl BufferString {
    /// Empties `value` and locks it. `input` must be another String.
    pub fn new(ruby: &Ruby, value: Value, input: Value) -> Result<Self, Error> {
        let string = RString::from_value(value).ok_or_else(|| {
            let text = "buffer: must be a String";
            Error::new(ruby.exception_type_error(), text)
        })?;
        if value.as_raw() == input.as_raw() {
            let text = "buffer: is the same String as the input";
            return Err(Error::new(ruby.exception_arg_error(), text));
        }
        let string = string.as_raw();
        protect(|| {
            // SAFETY: a live String; what may raise (it is frozen, or locked)
            // runs under protect. The length only gets smaller.
            unsafe {
                rb_sys::rb_str_modify(string);
                rb_sys::rb_str_set_len(string, 0);
                rb_sys::rb_enc_associate_index(string, rb_sys::rb_ascii8bit_encindex());
                rb_sys::rb_str_locktmp(string)
            }
        })?;
        Ok(Self {
            string,
            capacity: 0,
            locked: true,
        })
    }

    fn unlock(&mut self) {
        if std::mem::take(&mut self.locked) {
            let string = self.string;
            // SAFETY: a live String that was locked by us; it raises only for
            // one that is not.
            let _ = protect(|| unsafe { rb_sys::rb_str_unlocktmp(string) });
        }
    }

    /// Makes room for `capacity` bytes and keeps the first `written`.
    fn grow(&mut self, ruby: &Ruby, written: usize, capacity: usize) -> Result<(), Error> {
        let written = c_len(ruby, written)?;
        let more = c_len(ruby, capacity)? - written;
        let string = self.string;
        self.unlock();
        protect(|| {
            // SAFETY: the first `written` bytes are set; what may raise runs
            // under protect.
            unsafe {
                rb_sys::rb_str_set_len(string, written);
                rb_sys::rb_str_modify_expand(string, more);
                rb_sys::rb_str_locktmp(string)
            }
        })?;
        self.locked = true;
        self.capacity = capacity;
        Ok(())
    }

    fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the String is not shared, has this capacity (0 until it has
        // grown), and is locked against every change of it.
        unsafe {
            let start = rb_sys::RSTRING_PTR(self.string).cast_mut();
            std::slice::from_raw_parts_mut(start.cast::<MaybeUninit<u8>>(), self.capacity)
        }
    }

    fn finish(mut self, ruby: &Ruby, written: usize) -> Result<RString, Error> {
        let len = c_len(ruby, written)?;
        self.unlock();
        let string = self.string;
        protect(|| {
            // SAFETY: the first `written` bytes are set. Another thread may
            // have looked at the String meanwhile: what it remembers about its
            // characters is forgotten.
            unsafe {
                rb_sys::rb_str_modify(string);
                rb_sys::rb_str_set_len(string, len);
            }
            string
        })?;
        Ok(string_of(string))
    }
}

impl Drop for BufferString {
    fn drop(&mut self) {
        self.unlock();
        rb_sys::rb_gc_guard!(self.string);
    }
}

/// Where output goes: into a new String, or into a caller's.
pub enum Output {
    /// A new String.
    New(OutputString),
    /// A caller's own String.
    Buffer(BufferString),
}

impl Output {
    /// A new String with room for `capacity` bytes.
    pub fn new(ruby: &Ruby, capacity: usize) -> Result<Self, Error> {
        OutputString::with_capacity(ruby, capacity).map(Self::New)
    }

    /// How many bytes fit.
    pub fn capacity(&self) -> usize {
        match self {
            Self::New(string) => string.capacity,
            Self::Buffer(string) => string.capacity,
        }
    }

    /// The memory to write to: the same at each call, until the output grows.
    pub fn room(&mut self) -> &mut [MaybeUninit<u8>] {
        match self {
            Self::New(string) => string.room(),
            Self::Buffer(string) => string.room(),
        }
    }

    /// Makes room for `capacity` bytes and keeps the first `written`.
    pub fn grow(&mut self, ruby: &Ruby, written: usize, capacity: usize) -> Result<(), Error> {
        match self {
            Self::New(string) => string.grow(ruby, written, capacity),
            Self::Buffer(string) => string.grow(ruby, written, capacity),
        }
    }

    /// The finished String: its first `written` bytes.
    pub fn finish(self, ruby: &Ruby, written: usize) -> Result<RString, Error> {
        match self {
            Self::New(string) => string.finish(ruby, written),
            Self::Buffer(string) => string.finish(ruby, written),
        }
    }
}

/// A new binary String with these bytes.
pub fn string_from(ruby: &Ruby, bytes: &[u8]) -> Result<RString, Error> {
    let len = c_len(ruby, bytes.len())?;
    // SAFETY: pointer and length of a live slice that is not Ruby's; what may
    // raise runs under protect.
    protect(|| unsafe { rb_sys::rb_str_new(bytes.as_ptr().cast(), len) }).map(string_of)
}

fn string_of(value: VALUE) -> RString {
    // SAFETY: a live String from one of the functions above.
    let value = unsafe { Value::from_raw(value) };
    RString::from_value(value).unwrap_or_else(|| unreachable!("a String was made"))
}

/// A length as C has it. Longer than that no String can be.
fn c_len(ruby: &Ruby, len: usize) -> Result<c_long, Error> {
    c_long::try_from(len).map_err(|_| {
        Error::new(
            ruby.exception_no_mem_error(),
            format!("a String of {len} bytes cannot be"),
        )
    })
}
