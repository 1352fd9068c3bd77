// The number that encodes free links.
#pragma once

#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

namespace blockyard::heap {

/// Sixteen random bytes come with every process from the kernel (AT_RANDOM): no system call, no file. The low bits stay
/// zero, so that an encoded null differs from every aligned pointer only by the key.
inline std::uintptr_t secret() {
  const auto bytes = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
  std::uint64_t words[2] = {0x9E3779B97F4A7C15u, 0xD1B54A32D192ED03u};
  if (bytes != nullptr) {
    std::memcpy(words, bytes, sizeof words);
  }
  // Not the canary's own bytes: the first word is glibc's stack protector.
  std::uint64_t mixed = words[1] ^ (words[0] * 0xBF58476D1CE4E5B9u);
  mixed ^= mixed >> 29;
  return static_cast<std::uintptr_t>(mixed * 0x94D049BB133111EBu) & ~std::uintptr_t{15};
}

}  // namespace blockyard::heap
