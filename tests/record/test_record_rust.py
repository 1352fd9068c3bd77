"""Programs of Rust: methods are named with their types, and an allocator that a crate brings is recorded.

The crates' allocators are stood in for by one in C with their functions' names, which the program calls as the crates
do; `tests/record/run-programs rust` takes the crates themselves.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from recorded import blockyard, record
from the_command import success

PROGRAM = """
struct World { things: Vec<Box<[u8; 1234]>> }
impl World {
    #[inline(never)]
    fn run(&mut self) { for _ in 0..4000 { self.things.push(std::hint::black_box(Box::new([7; 1234]))); } }
}
fn main() {
    let mut world = World { things: Vec::new() };
    world.run();
    assert_eq!(world.things.len(), 4000);
}
"""
ALLOCATOR = """
#include <stddef.h>
#include <string.h>
static char pool[1 << 25];
static size_t at;
static void *give(size_t size, size_t alignment) {
  at = (at + alignment - 1) & ~(alignment - 1);
  void *block = pool + at;
  at += size;
  return block;
}
"""
JEMALLOC = """
void *_rjem_malloc(size_t size) { return give(size, 16); }
void *_rjem_mallocx(size_t size, int flags) { return give(size, (size_t)1 << (flags & 63)); }
void *_rjem_rallocx(void *block, size_t size, int flags) {
  return memmove(_rjem_mallocx(size, flags), block, size);
}
void *_rjem_realloc(void *block, size_t size) { return _rjem_rallocx(block, size, 4); }
void _rjem_sdallocx(void *block, size_t size, int flags) { (void)block, (void)size, (void)flags; }
void _rjem_free(void *block) { (void)block; }
"""
OF_JEMALLOCATOR = """
use std::alloc::{GlobalAlloc, Layout};
extern "C" {
    fn _rjem_malloc(size: usize) -> *mut u8;
    fn _rjem_mallocx(size: usize, flags: i32) -> *mut u8;
    fn _rjem_rallocx(block: *mut u8, size: usize, flags: i32) -> *mut u8;
    fn _rjem_sdallocx(block: *mut u8, size: usize, flags: i32);
}
fn flags(layout: &Layout) -> i32 {
    if layout.align() <= 16 && layout.align() <= layout.size() { 0 } else { layout.align().trailing_zeros() as i32 }
}
struct Own;
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match flags(&layout) { 0 => _rjem_malloc(layout.size()), flags => _rjem_mallocx(layout.size(), flags) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) { _rjem_sdallocx(block, layout.size(), flags(&layout)) }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        _rjem_rallocx(block, size, flags(&layout))
    }
}
#[global_allocator]
static GLOBAL: Own = Own;
"""
# What the linker keeps of it: nobody calls mi_malloc().
MIMALLOC = """
void *mi_malloc_aligned(size_t size, size_t alignment) { return give(size, alignment); }
void *mi_realloc_aligned(void *block, size_t size, size_t alignment) {
  return memmove(give(size, alignment), block, size);
}
void mi_free(void *block) { (void)block; }
"""
OF_MIMALLOC = """
use std::alloc::{GlobalAlloc, Layout};
extern "C" {
    fn mi_malloc_aligned(size: usize, alignment: usize) -> *mut u8;
    fn mi_realloc_aligned(block: *mut u8, size: usize, alignment: usize) -> *mut u8;
    fn mi_free(block: *mut u8);
}
struct Own;
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 { mi_malloc_aligned(layout.size(), layout.align()) }
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) { mi_free(block) }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        mi_realloc_aligned(block, size, layout.align())
    }
}
#[global_allocator]
static GLOBAL: Own = Own;
"""


def built(folder: Path, source: str, allocator: str = "") -> str:
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("PROGRAMS OF RUST WERE NOT TESTED: rustc is missing")
    (folder / "game.rs").write_text(source + PROGRAM)
    (folder / "allocator.c").write_text(ALLOCATOR + allocator)
    subprocess.run(["cc", "-w", "-O2", "-c", "-o", "allocator.o", "allocator.c"], cwd=folder, check=True)
    link = ("-C", f"link-arg={folder / 'allocator.o'}") if allocator else ()
    subprocess.run([compiler, "-g", "-O", "--edition", "2021", *link, "game.rs"], cwd=folder, check=True)
    return str(folder / "game")


def first_site(journal: Path) -> str:
    said = success(blockyard("sites", journal, "--json")).stdout
    assert "{impl#" not in said
    return json.loads(said)["sites"][0]["function"]


def test_a_method_is_named_with_its_type(tmp_path):
    record(tmp_path / "game.byj", built(tmp_path, ""))
    assert first_site(tmp_path / "game.byj") == "game::World::run"


@pytest.mark.parametrize(
    "source, allocator", [(OF_JEMALLOCATOR, JEMALLOC), (OF_MIMALLOC, MIMALLOC)], ids=["jemallocator", "mimalloc"]
)
def test_an_allocator_of_a_crate_is_recorded(tmp_path, source, allocator):
    done = record(tmp_path / "game.byj", built(tmp_path, source, allocator))
    assert done.journal().kinds(1234).total() == 4000
    assert done.journal().frees_of(1234) == 4000
    assert first_site(tmp_path / "game.byj") == "game::World::run", "not the crate's own function"
