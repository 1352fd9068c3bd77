use core::ffi::{c_char, CStr};
use core::time::Duration;

extern "C" {
    fn by_frame_mark();
    fn by_frame_end(budget_ns: u64);
    fn by_thread_end_frame();
    fn by_phase_mark(name: *const c_char);
}

/// Ends the program's frame: lets the heap do deferred work for up to `budget`, and marks the frame for a recorder.
///
/// Call it once per frame, on the thread that owns the frame. The mark alone is [`frame_mark`].
///
/// ```
/// for _ in 0..60 {
///     // update, draw
///     blockyard::frame_end(std::time::Duration::from_micros(200));
/// }
/// ```
pub fn frame_end(budget: Duration) {
    // SAFETY: any thread may call it at any time.
    unsafe { by_frame_end(u64::try_from(budget.as_nanos()).unwrap_or(u64::MAX)) }
}

/// Marks the end of a frame of the calling thread, for a program that has another allocator.
///
/// The first mark switches off those that a recorder makes by itself at buffer swaps, so that no frame counts twice.
pub fn frame_mark() {
    // SAFETY: as above.
    unsafe { by_frame_mark() }
}

/// Ends the calling thread's frame of temp memory, which C code of the program may use. It is no mark.
pub fn thread_end_frame() {
    // SAFETY: as above; nothing in this crate hands out temp memory.
    unsafe { by_thread_end_frame() }
}

/// Marks the begin of a phase of the program, such as "menu" or "level 3". 4,096 bytes of the name are kept.
///
/// ```
/// blockyard::phase(c"loading");
/// ```
pub fn phase(name: &CStr) {
    // SAFETY: the name is copied.
    unsafe { by_phase_mark(name.as_ptr()) }
}
