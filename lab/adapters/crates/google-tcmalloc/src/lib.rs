//! Nothing but tcmalloc's own objects: crates.cmake links them into libgoogle-tcmalloc-crate.so.

extern crate libtcmalloc_sys;
