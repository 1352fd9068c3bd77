//! Nothing but jemalloc's own objects: crates.cmake links them into libjemalloc-crate.so.

extern crate tikv_jemalloc_sys;
