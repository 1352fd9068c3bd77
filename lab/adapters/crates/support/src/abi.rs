//! lab/include/blockyard/adapter.h in Rust: same names, same order, same meaning.

use std::os::raw::{c_char, c_int, c_void};

pub const ABI: u32 = 1;
pub const NEEDS_POOL: u32 = 1 << 0;
pub const NEEDS_LOCK: u32 = 1 << 1;
pub const SIZED_FREE: u32 = 1 << 2;
pub const EMULATES_ZEROED: u32 = 1 << 3;

/// by_adapter_setup.
#[repr(C)]
pub struct Setup {
    pub abi: u32,
    pub threads: u32,
    pub peak_bytes: u64,
    pub peak_blocks: u64,
    pub pool_bytes: u64,
    pub populate: c_int,
    pub options: *const c_char,
    pub error: *mut c_char,
    pub error_bytes: usize,
}

impl Setup {
    /// Bytes an allocator needs for the journal's peak; the same rule as bytes_for_peak in adapters/support/setup.hpp.
    pub fn bytes_for_peak(&self) -> usize {
        (self.peak_bytes + self.peak_bytes / 4 + 32 * self.peak_blocks) as usize
    }
}

/// by_adapter.
#[repr(C)]
pub struct Adapter {
    pub abi: u32,
    pub flags: u32,
    /// Ends with a NUL, as does `version`.
    pub name: *const u8,
    pub version: *const u8,
    pub init: unsafe extern "C" fn(*const Setup) -> c_int,
    pub thread_start: Option<unsafe extern "C" fn()>,
    pub thread_stop: Option<unsafe extern "C" fn()>,
    pub allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    pub allocate_zeroed: unsafe extern "C" fn(usize) -> *mut c_void,
    pub allocate_aligned: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    pub reallocate: unsafe extern "C" fn(*mut c_void, usize, usize, usize) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub free_sized: Option<unsafe extern "C" fn(*mut c_void, usize, usize)>,
}

// Safety: the table is constant, and so is everything that it points to.
unsafe impl Sync for Adapter {}

/// Writes `sentence` into the setup's error buffer, cut to its size, and returns 1.
///
/// # Safety
/// `setup.error` must be null or point to `setup.error_bytes` writable bytes.
pub unsafe fn fail(setup: &Setup, sentence: &str) -> c_int {
    if !setup.error.is_null() && setup.error_bytes > 0 {
        let length = sentence.len().min(setup.error_bytes - 1);
        std::ptr::copy_nonoverlapping(sentence.as_ptr(), setup.error.cast(), length);
        *setup.error.add(length) = 0;
    }
    1
}

/// 0 when the caller speaks this version of the ABI, else the result of `fail`.
///
/// # Safety
/// As for `fail`.
pub unsafe fn check_abi(setup: &Setup) -> c_int {
    if setup.abi == ABI {
        return 0;
    }
    let caller = setup.abi;
    fail(setup, &format!("the adapter was built for version {ABI} of the adapter ABI, the caller for version {caller}"))
}
