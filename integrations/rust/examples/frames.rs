//! A program of three frames, two threads and a panic, for `blockyard record`: what it allocates has sizes of its own.

use std::time::Duration;

#[global_allocator]
static GLOBAL: blockyard::Heap = blockyard::Heap;

#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 192]);

fn main() {
    blockyard::phase(c"level 1");
    for _ in 0..3 {
        let _physics = blockyard::tag(c"physics");
        let contacts: Vec<Box<[u8; 1234]>> = (0..100).map(|_| std::hint::black_box(Box::new([1; 1234]))).collect();
        blockyard::tagged(c"solver", || std::hint::black_box(Box::new(Line([0; 192]))));
        let path = blockyard::TagPath::current();
        let worker = std::thread::spawn(move || {
            let _same = path.enter();
            drop(contacts);
            drop(std::hint::black_box(vec![0u8; 4321]));
        });
        worker.join().expect("the worker ended");
        blockyard::frame_end(Duration::from_micros(200));
    }
    let caught = std::panic::catch_unwind(|| {
        let _ai = blockyard::tag(c"ai");
        blockyard::tagged(c"path", || {
            drop(std::hint::black_box(Box::new([1u8; 2345])));
            std::panic::resume_unwind(Box::new("as planned")); // a panic without its message
        });
    });
    assert!(caught.is_err());
    drop(std::hint::black_box(Box::new([1u8; 3456])));
}
