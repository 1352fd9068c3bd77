//! Blockyard's heap as the global allocator, and what a recording of the program shows: frames, phases and tags.
//!
//! ```
//! use std::time::Duration;
//!
//! #[global_allocator]
//! static GLOBAL: blockyard::Heap = blockyard::Heap;
//!
//! fn main() {
//!     blockyard::phase(c"level 1");
//!     for _ in 0..3 {
//!         let _physics = blockyard::tag(c"physics"); // until the end of the block
//!         let contacts: Vec<u64> = (0..100).collect();
//!         blockyard::tagged(c"solver", || contacts.iter().sum::<u64>()); // "physics/solver"
//!         blockyard::frame_end(Duration::from_micros(200));
//!     }
//! }
//! ```
//!
//! The heap bounds its slowest calls: a background thread makes memory resident before the program asks for it.
//! `blockyard record PROGRAM` writes down every allocation with the thread's tag and call stack; `blockyard sites`,
//! `replay` and `report` say what they cost. Frames, phases and tags work with any global allocator, and cost about a
//! nanosecond while nothing records.
//!
//! The crate is `no_std`. Linux on x86-64 and Arm; it compiles the C++ library that it carries, with a C++20 compiler.
#![no_std]
#![warn(missing_docs)]

mod frame;
mod heap;
mod tag;

pub use frame::{frame_end, frame_mark, phase, thread_end_frame};
pub use heap::{prefault, reserve, statistics, trim, Exhausted, Heap, Statistics};
pub use tag::{tag, tagged, Tag, TagPath};
