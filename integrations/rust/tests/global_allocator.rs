//! The heap serves everything that a program of Rust asks for.

use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static GLOBAL: blockyard::Heap = blockyard::Heap;

#[test]
fn collections_are_on_the_heap() {
    let before = blockyard::statistics();
    let blocks: Vec<Box<[u8; 4096]>> = (0..1000).map(|_| Box::new([7; 4096])).collect();
    let with = blockyard::statistics();
    // Half of it, for other tests free theirs meanwhile.
    assert!(with.live >= before.live + 500 * 4096);
    drop(blocks);
    assert!(blockyard::statistics().live < with.live);
}

#[test]
fn blocks_have_the_alignment_and_the_contents_that_were_asked_for() {
    for align in [1, 8, 16, 64, 4096] {
        for size in [1, 15, 100, 5000, 100_000] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let larger = Layout::from_size_align(size * 2, align).unwrap();
            unsafe {
                let block = GLOBAL.alloc_zeroed(layout);
                assert_eq!(block.align_offset(align), 0);
                assert!(std::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0));
                block.write_bytes(0xa5, size);
                let block = GLOBAL.realloc(block, layout, size * 2);
                assert_eq!(block.align_offset(align), 0);
                assert!(std::slice::from_raw_parts(block, size).iter().all(|&byte| byte == 0xa5));
                GLOBAL.dealloc(block, larger);
            }
        }
    }
}

#[test]
fn what_cannot_be_had_is_null() {
    let layout = Layout::from_size_align(1 << 60, 16).unwrap();
    assert!(unsafe { GLOBAL.alloc(layout) }.is_null());
}

#[test]
fn blocks_may_be_freed_on_another_thread() {
    let blocks: Vec<String> = (0..10_000).map(|number| format!("a string that is number {number}")).collect();
    let sum = std::thread::spawn(move || blocks.iter().map(String::len).sum::<usize>()).join().unwrap();
    assert!(sum > 250_000);
}

#[test]
fn a_panic_below_a_tag_reaches_who_catches_it() {
    let caught = std::panic::catch_unwind(|| blockyard::tagged(c"physics", || panic!("as planned")));
    assert!(caught.is_err());
}
