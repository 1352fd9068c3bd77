//! snmalloc: its C functions, with nothing between them and the replayer where the signatures agree.

use std::os::raw::{c_int, c_void};

use blockyard_adapter_support::{check_abi, Adapter, Setup, ABI};
use snmalloc_sys::{sn_calloc, sn_free, sn_malloc, sn_malloc_usable_size, sn_realloc, sn_rust_alloc};

unsafe extern "C" fn init(setup: *const Setup) -> c_int {
    check_abi(&*setup)
}

unsafe extern "C" fn allocate_zeroed(size: usize) -> *mut c_void {
    sn_calloc(1, size)
}

unsafe extern "C" fn reallocate(block: *mut c_void, _: usize, _: usize, size: usize) -> *mut c_void {
    sn_realloc(block, size)
}

static ADAPTER: Adapter = Adapter {
    abi: ABI,
    flags: 0,
    name: b"snmalloc\0".as_ptr(),
    version: concat!(env!("ALLOCATOR_VERSION"), "\0").as_ptr(),
    init,
    thread_start: None,
    thread_stop: None,
    allocate: sn_malloc,
    allocate_zeroed,
    allocate_aligned: sn_rust_alloc,
    reallocate,
    free: sn_free,
    free_sized: None,
};

#[no_mangle]
pub extern "C" fn by_adapter_get() -> *const Adapter {
    &ADAPTER
}

/// # Safety
/// `block` is a live block of this allocator.
#[no_mangle]
pub unsafe extern "C" fn by_adapter_usable_size(block: *mut c_void) -> usize {
    sn_malloc_usable_size(block)
}
