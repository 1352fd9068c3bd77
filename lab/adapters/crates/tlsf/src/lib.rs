//! TLSF from the crate rlsf: one pool, no lock, and a free that needs the block's alignment. Prefaulted: every page of
//! the pool has been written to.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::os::raw::{c_int, c_void};
use std::ptr::{null_mut, slice_from_raw_parts_mut, NonNull};

use blockyard_adapter_support::{
    check_abi, fail, map, Adapter, Setup, ABI, EMULATES_ZEROED, NEEDS_LOCK, NEEDS_POOL, SIZED_FREE,
};
use rlsf::Tlsf;

/// malloc's own alignment.
const PLAIN: usize = 16;
/// Pools start at a huge page's alignment, so that the kernel may use huge pages as for any large mapping.
const POOL_ALIGNMENT: usize = 2 << 20;

/// 32 first levels of 32 second levels each: blocks up to 128 GiB, 3 % between neighbouring lists.
struct Pool(UnsafeCell<Tlsf<'static, u32, u32, 32, 32>>);

// Safety: BY_ADAPTER_NEEDS_LOCK makes the replayer lock around every call of a threaded replay.
unsafe impl Sync for Pool {}

static POOL: Pool = Pool(UnsafeCell::new(Tlsf::new()));

unsafe extern "C" fn init(setup: *const Setup) -> c_int {
    let setup = &*setup;
    if check_abi(setup) != 0 {
        return 1;
    }
    let bytes = setup.pool_bytes as usize;
    let memory = map(bytes, POOL_ALIGNMENT, setup.populate != 0);
    if memory.is_null() {
        return fail(setup, &format!("the system has no memory for a pool of {bytes} bytes"));
    }
    let block = NonNull::new_unchecked(slice_from_raw_parts_mut(memory, bytes));
    match (*POOL.0.get()).insert_free_block_ptr(block) {
        Some(_) => 0,
        None => fail(setup, &format!("a pool of {bytes} bytes is too small")),
    }
}

unsafe extern "C" fn allocate_aligned(alignment: usize, size: usize) -> *mut c_void {
    let layout = match Layout::from_size_align(size.max(1), alignment.max(PLAIN)) {
        Ok(layout) => layout,
        Err(_) => return null_mut(),
    };
    (*POOL.0.get()).allocate(layout).map_or(null_mut(), |block| block.as_ptr().cast())
}

unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
    allocate_aligned(PLAIN, size)
}

unsafe extern "C" fn allocate_zeroed(size: usize) -> *mut c_void {
    let block = allocate(size);
    if !block.is_null() {
        block.cast::<u8>().write_bytes(0, size);
    }
    block
}

unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize, alignment: usize) {
    if let Some(block) = NonNull::new(block.cast::<u8>()) {
        (*POOL.0.get()).deallocate(block, alignment.max(PLAIN));
    }
}

/// Only for blocks of malloc's own alignment; the flags tell the replayer to use free_sized.
unsafe extern "C" fn free(block: *mut c_void) {
    free_sized(block, 0, PLAIN);
}

/// As realloc: the result has malloc's own alignment, whatever the old block had.
unsafe extern "C" fn reallocate(block: *mut c_void, old_size: usize, old_alignment: usize, size: usize) -> *mut c_void {
    let old = match NonNull::new(block.cast::<u8>()) {
        Some(old) => old,
        None => return allocate(size),
    };
    if old_alignment > PLAIN {
        let moved = allocate(size);
        if !moved.is_null() {
            moved.cast::<u8>().copy_from_nonoverlapping(old.as_ptr(), old_size.min(size));
            free_sized(block, old_size, old_alignment);
        }
        return moved;
    }
    match Layout::from_size_align(size.max(1), PLAIN) {
        Ok(layout) => (*POOL.0.get()).reallocate(old, layout).map_or(null_mut(), |block| block.as_ptr().cast()),
        Err(_) => null_mut(),
    }
}

static ADAPTER: Adapter = Adapter {
    abi: ABI,
    flags: NEEDS_POOL | NEEDS_LOCK | SIZED_FREE | EMULATES_ZEROED,
    name: b"tlsf\0".as_ptr(),
    version: concat!("rlsf ", env!("ALLOCATOR_VERSION"), "\0").as_ptr(),
    init,
    thread_start: None,
    thread_stop: None,
    allocate,
    allocate_zeroed,
    allocate_aligned,
    reallocate,
    free,
    free_sized: Some(free_sized),
};

#[no_mangle]
pub extern "C" fn by_adapter_get() -> *const Adapter {
    &ADAPTER
}
