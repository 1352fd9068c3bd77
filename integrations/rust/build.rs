//! Compiles the C++ library, whose sources are in the crate. With `BLOCKYARD_LIB_DIR` it links `libblockyard.a` of this
//! version from there instead.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Not of the library itself: the stand-in for malloc, other systems.
const LEFT_OUT: [&str; 2] = ["malloc", "windows"];
/// Where a call fewer counts; library/src/heap/fast_paths.cmake says what each option is for.
const FAST_PATHS: [&str; 3] = ["malloc_api.cpp", "arena_api.cpp", "small_blocks.cpp"];

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("the library's sources").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        if path.is_dir() && !LEFT_OUT.contains(&name) {
            collect(&path, sources);
        } else if name.ends_with(".cpp") {
            sources.push(path);
        }
    }
}

fn compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build.include("native/include").include("native/src").warnings(false).opt_level(3).define("NDEBUG", None);
    build.force_frame_pointer(true);
    build
}

fn cpp() -> cc::Build {
    let mut build = compiler();
    build.cpp(true).std("c++20").define("BLOCKYARD_OBSERVED", "1").flag("-fvisibility=hidden");
    build.flag("-fno-function-sections").flag("-include").flag("native/src/base/own_code.hpp");
    build
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/shim.c");
    println!("cargo:rerun-if-env-changed=BLOCKYARD_LIB_DIR");
    compiler().file("src/shim.c").compile("blockyard_rust");
    if let Some(folder) = env::var_os("BLOCKYARD_LIB_DIR") {
        let folder = PathBuf::from(folder);
        println!("cargo:rerun-if-changed={}", folder.join("libblockyard.a").display());
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static=blockyard");
        println!("cargo:rustc-link-lib=stdc++");
        return;
    }
    println!("cargo:rerun-if-changed=native/include");
    println!("cargo:rerun-if-changed=native/src");
    let mut sources = Vec::new();
    collect(Path::new("native/src"), &mut sources);
    let (fast, rest): (Vec<_>, Vec<_>) = sources
        .into_iter()
        .partition(|path| FAST_PATHS.iter().any(|name| path.file_name().is_some_and(|file| file == *name)));
    let mut fast_paths = cpp();
    fast_paths.force_frame_pointer(false).flag("-fno-exceptions").flag("-falign-functions=64");
    let objects = fast_paths.files(fast).compile_intermediates();
    cpp().objects(objects).files(rest).compile("blockyard");
}
