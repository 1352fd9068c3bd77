use core::ffi::{c_char, CStr};
use core::marker::PhantomData;

extern "C" {
    fn by_rust_tag_push(name: *const c_char);
    fn by_rust_tag_pop();
    fn by_rust_tag_current() -> u32;
    fn by_rust_tag_enter(number: u32);
}

/// A level of the calling thread's tags, which ends when this is dropped. Levels end in the reverse order of making.
#[must_use = "the tag ends at once when it is dropped"]
#[derive(Debug)]
pub struct Tag(PhantomData<*const ()>); // of one thread: neither Send nor Sync

impl Drop for Tag {
    fn drop(&mut self) {
        // SAFETY: without a level it does nothing.
        unsafe { by_rust_tag_pop() }
    }
}

/// Adds a level to the calling thread's tags until the result is dropped.
///
/// A recorder writes the tags down with every allocation, and `blockyard sites --by tag` adds up what each of them
/// allocates. 232 bytes of the name are kept; a '/' in it begins another level.
///
/// ```
/// let _physics = blockyard::tag(c"physics");
/// let broadphase = blockyard::tag(c"broadphase"); // the thread's tag is "physics/broadphase"
/// drop(broadphase);
/// ```
pub fn tag(name: &'static CStr) -> Tag {
    // SAFETY: the name stays.
    unsafe { by_rust_tag_push(name.as_ptr()) };
    Tag(PhantomData)
}

/// Calls `work` with a level more on the calling thread's tags; the name need not be static.
///
/// ```
/// let name = std::ffi::CString::new(format!("level {}", 3))?;
/// let things = blockyard::tagged(&name, || vec![1, 2, 3]);
/// # assert_eq!(things.len(), 3);
/// # Ok::<(), std::ffi::NulError>(())
/// ```
pub fn tagged<T>(name: &CStr, work: impl FnOnce() -> T) -> T {
    // SAFETY: the name outlives the level, which ends here, also when `work` panics.
    unsafe { by_rust_tag_push(name.as_ptr()) };
    let _level = Tag(PhantomData);
    work()
}

/// All tags of a thread at one moment, to be carried to another thread.
///
/// ```
/// let _loading = blockyard::tag(c"loading");
/// let path = blockyard::TagPath::current();
/// std::thread::spawn(move || {
///     let _same = path.enter();
///     vec![0; 100] // of "loading", too
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagPath(u32);

impl TagPath {
    /// The calling thread's tags; none without a recorder.
    pub fn current() -> Self {
        // SAFETY: any thread may call it at any time.
        TagPath(unsafe { by_rust_tag_current() })
    }

    /// Adds a level at which the calling thread has these tags instead of its own.
    pub fn enter(self) -> Tag {
        // SAFETY: a number that it did not give counts as no tag.
        unsafe { by_rust_tag_enter(self.0) };
        Tag(PhantomData)
    }
}
