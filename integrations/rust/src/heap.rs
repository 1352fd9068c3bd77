use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};

extern "C" {
    fn by_malloc(size: usize) -> *mut c_void;
    fn by_calloc(count: usize, size: usize) -> *mut c_void;
    fn by_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn by_aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    fn by_free(block: *mut c_void);
    fn by_free_sized(block: *mut c_void, size: usize);
    fn by_heap_reserve(bytes: usize);
    fn by_heap_prefault(bytes: usize) -> c_int;
    fn by_heap_trim() -> usize;
    fn by_heap_get_statistics(statistics: *mut Statistics);
}

/// What `by_malloc` aligns to.
const ALIGNMENT: usize = 16;

/// Blockyard's heap: a value for `#[global_allocator]`.
///
/// Blocks up to 8 KiB take O(1), without a lock or an atomic read-modify-write on the thread that allocated them,
/// except for a new slab. Any thread may free any block. The heap reads `BLOCKYARD_HEAP_...` from the environment at
/// its first use.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: blockyard::Heap = blockyard::Heap;
/// # fn main() { assert_eq!(vec![7; 1000].len(), 1000); }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

// SAFETY: by_malloc and its kin keep malloc's contract, from any thread, and never unwind. Layouts have no size 0 here.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            by_malloc(layout.size()).cast()
        } else {
            by_aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= ALIGNMENT {
            by_free_sized(block.cast(), layout.size());
        } else {
            by_free(block.cast());
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return by_calloc(1, layout.size()).cast();
        }
        let block: *mut u8 = by_aligned_alloc(layout.align(), layout.size()).cast();
        if !block.is_null() {
            block.write_bytes(0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= ALIGNMENT {
            return by_realloc(block.cast(), size).cast();
        }
        let moved: *mut u8 = by_aligned_alloc(layout.align(), size).cast();
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, layout.size().min(size));
            by_free(block.cast());
        }
        moved
    }
}

/// What the heap counted since its start, or holds now; in bytes unless said otherwise.
///
/// ```
/// assert!(blockyard::statistics().live <= blockyard::statistics().used);
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Slabs for which no populated memory was ready.
    pub ready_misses_small: u64,
    /// Blocks above 8 KiB and up to 1 MiB, likewise.
    pub ready_misses_medium: u64,
    /// Blocks above 1 MiB handed out.
    pub large_blocks: u64,
    /// Made resident by the background thread, ahead of need.
    pub populated_by_janitor: u64,
    /// Made resident by the program's threads, which waited for it.
    pub populated_by_program: u64,
    /// Given back to the operating system.
    pub purged: u64,
    /// Free and resident now.
    pub ready: u64,
    /// Of slabs, blocks and free runs that are populated, may be, or are being so.
    pub committed: u64,
    /// Of those, and of what waits to be given back, in memory now.
    pub resident: u64,
    /// Of slabs and of blocks above 8 KiB.
    pub used: u64,
    /// Of live blocks, rounded up to their size class or to pages.
    pub live: u64,
    /// Blocks that another thread freed and their owner took back.
    pub remote_frees_adopted: u64,
    /// Blocks that another thread freed and their owner has not taken back yet.
    pub remote_frees_waiting: u64,
    /// The most threads and arenas that lived at once.
    pub heaps: u64,
    /// The share of used memory that no block uses, from 0 to 1.
    pub fragmentation: f64,
}

/// The heap's counts. O(slabs and pages), and a system call per 16 MiB.
pub fn statistics() -> Statistics {
    let mut statistics = Statistics::default();
    // SAFETY: the shim asserts that both have the same fields.
    unsafe { by_heap_get_statistics(&mut statistics) };
    statistics
}

/// From now on keeps at least `bytes` resident ahead of need; call it before a level. 0 returns to the setting.
///
/// ```
/// blockyard::reserve(64 << 20);
/// # blockyard::reserve(0);
/// ```
pub fn reserve(bytes: usize) {
    // SAFETY: any thread may call it at any time.
    unsafe { by_heap_reserve(bytes) }
}

/// Makes memory resident on the calling thread until `bytes` are ready: 0.1 to 0.5 ms per MiB.
///
/// # Errors
///
/// When memory is exhausted; at once when `bytes` exceeds the machine's memory.
///
/// ```
/// assert_eq!(blockyard::prefault(1 << 20), Ok(()));
/// assert_eq!(blockyard::prefault(usize::MAX), Err(blockyard::Exhausted));
/// ```
pub fn prefault(bytes: usize) -> Result<(), Exhausted> {
    // SAFETY: as above.
    match unsafe { by_heap_prefault(bytes) } {
        0 => Ok(()),
        _ => Err(Exhausted),
    }
}

/// There is not so much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

impl core::fmt::Display for Exhausted {
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.write_str("memory is exhausted")
    }
}

/// Gives free memory back to the operating system now. Returns its bytes.
pub fn trim() -> usize {
    // SAFETY: as above.
    unsafe { by_heap_trim() }
}
