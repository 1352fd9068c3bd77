// Memory that no access may touch, in processes with checks: by AddressSanitizer's or Valgrind's means where one
// of them is there, else by a pattern.
#pragma once

#include <cstddef>

namespace blockyard::base {

/// Whether AddressSanitizer is in the process.
bool under_address_sanitizer();
/// Whether the process runs under Valgrind.
bool under_valgrind();
/// Whether hide() fills memory with its pattern and nothing reports an access: without both.
inline bool hide_fills() { return !under_address_sanitizer() && !under_valgrind(); }

/// Hides memory: an access is reported where it happens, or with hide_fills() a write is found later.
void hide(void* memory, std::size_t bytes, unsigned char pattern);

/// Makes memory usable again. Its contents are unspecified; Valgrind regards them as not initialised.
void show(void* memory, std::size_t bytes);

/// With hide_fills(): the first byte of hidden memory that is not the pattern. Else, and without one, nullptr.
/// O(bytes).
const void* find_write(const void* memory, std::size_t bytes, unsigned char pattern);

}  // namespace blockyard::base
