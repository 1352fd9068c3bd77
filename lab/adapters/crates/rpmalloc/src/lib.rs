//! rpmalloc: its C functions. Prefaulted: spans come from one populated region and go back to it, through the map and
//! unmap callbacks that rpmalloc offers.

mod spans;

use std::os::raw::{c_int, c_void};

use blockyard_adapter_support::{check_abi, fail, Adapter, Setup, ABI};
use rpmalloc_sys::{
    rpaligned_alloc, rpcalloc, rpfree, rpmalloc, rpmalloc_initialize, rpmalloc_thread_finalize,
    rpmalloc_thread_initialize, rpmalloc_usable_size, rprealloc,
};

unsafe extern "C" fn init(setup: *const Setup) -> c_int {
    let setup = &*setup;
    if check_abi(setup) != 0 {
        return 1;
    }
    let started = if setup.populate != 0 {
        if !spans::reserve(setup.bytes_for_peak()) {
            return fail(setup, "the system has no memory to populate for the journal's peak");
        }
        spans::initialize()
    } else {
        rpmalloc_initialize()
    };
    if started == 0 {
        0
    } else {
        fail(setup, "rpmalloc_initialize failed")
    }
}

// init has initialised the thread that called it; a second call on a thread does nothing.
unsafe extern "C" fn thread_start() {
    rpmalloc_thread_initialize();
}

unsafe extern "C" fn thread_stop() {
    rpmalloc_thread_finalize();
}

unsafe extern "C" fn allocate_zeroed(size: usize) -> *mut c_void {
    rpcalloc(1, size)
}

unsafe extern "C" fn reallocate(block: *mut c_void, _: usize, _: usize, size: usize) -> *mut c_void {
    rprealloc(block, size)
}

static ADAPTER: Adapter = Adapter {
    abi: ABI,
    flags: 0,
    name: b"rpmalloc\0".as_ptr(),
    // rpmalloc has no call for its version; 1.4.3 is what the crate's CHANGELOG says of the sources in it.
    version: concat!("1.4.3 (crate ", env!("ALLOCATOR_VERSION"), ")\0").as_ptr(),
    init,
    thread_start: Some(thread_start),
    thread_stop: Some(thread_stop),
    allocate: rpmalloc,
    allocate_zeroed,
    allocate_aligned: rpaligned_alloc,
    reallocate,
    free: rpfree,
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
    rpmalloc_usable_size(block)
}
