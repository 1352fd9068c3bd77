//! Populated memory for rpmalloc's spans, kept when rpmalloc gives it back.

use std::os::raw::{c_char, c_int, c_void};
use std::sync::Mutex;

use blockyard_adapter_support::{map, Region};

/// rpmalloc's default span size, to which every mapping must be aligned.
const SPAN: usize = 64 * 1024;
/// rpmalloc maps 64 spans at a time: what is left of the last such step stays unused, and so may one step per heap.
const SLACK: usize = 16 * 64 * SPAN;

/// rpmalloc_config_t of rpmalloc 1.4.3, which the crate does not declare.
#[repr(C)]
struct Config {
    memory_map: Option<unsafe extern "C" fn(usize, *mut usize) -> *mut c_void>,
    memory_unmap: Option<unsafe extern "C" fn(*mut c_void, usize, usize, usize)>,
    error_callback: Option<unsafe extern "C" fn(*const c_char)>,
    map_fail_callback: Option<unsafe extern "C" fn(usize) -> c_int>,
    page_size: usize,
    span_size: usize,
    span_map_count: usize,
    enable_huge_pages: c_int,
    unused: c_int,
}

extern "C" {
    fn rpmalloc_initialize_config(config: *const Config) -> c_int;
}

static REGION: Region = Region::new();
/// The last range that was given back; each names the one before it in its own first bytes.
static RETURNED: Mutex<usize> = Mutex::new(0);

/// What lies at the start of a range that was given back.
struct Returned {
    previous: usize,
    bytes: usize,
}

pub fn reserve(bytes: usize) -> bool {
    REGION.reserve(bytes + SLACK, SPAN)
}

/// Starts rpmalloc on this source of memory; 0 on success.
pub unsafe fn initialize() -> c_int {
    let config = Config {
        memory_map: Some(memory_map),
        memory_unmap: Some(memory_unmap),
        error_callback: None,
        map_fail_callback: None,
        page_size: 0,
        span_size: 0,
        span_map_count: 0,
        enable_huge_pages: 0,
        unused: 0,
    };
    rpmalloc_initialize_config(&config)
}

unsafe extern "C" fn memory_map(size: usize, offset: *mut usize) -> *mut c_void {
    *offset = 0;
    let mut at = take_returned(size);
    if at.is_null() {
        at = REGION.take(size, SPAN);
    }
    if at.is_null() {
        at = map(size, SPAN, false);
    }
    at.cast()
}

/// A range of exactly `size` bytes that was given back, or null.
unsafe fn take_returned(size: usize) -> *mut u8 {
    let mut newest = RETURNED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut link: *mut usize = &mut *newest;
    while *link != 0 {
        let range = *link as *mut Returned;
        if (*range).bytes == size {
            *link = (*range).previous;
            return range.cast();
        }
        link = &mut (*range).previous;
    }
    std::ptr::null_mut()
}

/// `release` is 0 for a part of a range, which stays populated; only the whole range is given back.
unsafe extern "C" fn memory_unmap(address: *mut c_void, _size: usize, _offset: usize, release: usize) {
    if release == 0 {
        return;
    }
    let mut newest = RETURNED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let range: *mut Returned = address.cast();
    range.write(Returned { previous: *newest, bytes: release });
    *newest = range as usize;
}
