//! For build scripts: the version of a dependency that Cargo.lock pins, which no crate can ask of another.

use std::{env, fs, path::Path};

/// Sets `ALLOCATOR_VERSION` for the crate whose build script calls this: the version of `package` in the workspace's
/// Cargo.lock, without its build metadata.
pub fn export_version(package: &str) {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets CARGO_MANIFEST_DIR");
    let path = Path::new(&folder).join("../Cargo.lock");
    let lock = fs::read_to_string(&path).expect("the workspace has a Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let at = lock.find(&entry).unwrap_or_else(|| panic!("Cargo.lock has no package {package}")) + entry.len();
    let version: String = lock[at..].chars().take_while(|&c| c != '"' && c != '+').collect();
    println!("cargo:rerun-if-changed={}", path.display());
    println!("cargo:rustc-env=ALLOCATOR_VERSION={version}");
}
