// Names as their authors wrote them.
#pragma once

#include <string>
#include <string_view>

namespace blockyard::names {

/// A C++ (Itanium) or Rust (v0 or legacy) symbol as source text; any other text unchanged. Rust's hash is left out, and
/// so is what a compiler adds to the name of a part or copy of a function. Rust's v0 symbols stay mangled in a build
/// without libiberty. Thread-safe.
std::string demangle(std::string_view symbol);

}  // namespace blockyard::names
