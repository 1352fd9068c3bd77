//! Memory straight from the system, populated on request.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

const PAGE: usize = 4096;

/// Maps `bytes` of zeroed memory at a multiple of `alignment` (a power of two, at least a page). With `populate` every
/// page has been written to. Null when the system refuses. Never unmapped.
pub fn map(bytes: usize, alignment: usize, populate: bool) -> *mut u8 {
    let size = (bytes + PAGE - 1) & !(PAGE - 1);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // Safety: a fresh anonymous mapping, of which only the parts outside the result are unmapped again.
    unsafe {
        let memory = libc::mmap(ptr::null_mut(), size + alignment, protection, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return ptr::null_mut();
        }
        let base = memory as usize;
        let start = (base + alignment - 1) & !(alignment - 1);
        if start > base {
            libc::munmap(memory, start - base);
        }
        libc::munmap((start + size) as *mut libc::c_void, base + alignment - start);
        if populate {
            for at in (start..start + size).step_by(PAGE) {
                ptr::write_volatile(at as *mut u8, 0);
            }
        }
        start as *mut u8
    }
}

/// One mapping, carved upwards. Thread-safe, lock-free.
pub struct Region {
    next: AtomicUsize,
    end: AtomicUsize,
}

impl Region {
    /// A region without memory: `take` gives nothing until `reserve` has succeeded.
    pub const fn new() -> Self {
        Self { next: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    }

    /// Maps and populates `bytes`; false when the system refuses. Call once, before any `take`.
    pub fn reserve(&self, bytes: usize, alignment: usize) -> bool {
        let start = map(bytes, alignment, true) as usize;
        self.end.store(if start == 0 { 0 } else { start + bytes }, Ordering::Relaxed);
        self.next.store(start, Ordering::Release);
        start != 0
    }

    /// `bytes` at a multiple of `alignment`, or null once the region is used up. Never given back.
    pub fn take(&self, bytes: usize, alignment: usize) -> *mut u8 {
        let end = self.end.load(Ordering::Relaxed);
        let mut next = self.next.load(Ordering::Acquire);
        loop {
            let start = (next + alignment - 1) & !(alignment - 1);
            if next == 0 || start > end || bytes > end - start {
                return ptr::null_mut();
            }
            match self.next.compare_exchange_weak(next, start + bytes, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return start as *mut u8,
                Err(current) => next = current,
            }
        }
    }
}

impl Default for Region {
    fn default() -> Self {
        Self::new()
    }
}
