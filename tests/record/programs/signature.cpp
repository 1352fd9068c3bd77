// Calls functions of every kind of signature, directly and through dlsym; --frame-symbol names one of them and must
// change nothing about what arrives and what comes back.
#include <dlfcn.h>

#include <cstdio>

#include "../libraries/signature.hpp"

int main() {
  for (int i = 0; i < 4; ++i) {
    const Big big = many_arguments(1, 2.5, 3, 4.5f, 5, 6, 7, 8, 9, 10.25, {11, 12, 13});
    if (big.sum != 1 + 2.5 + 3 + 4.5 + 5 + 6 + 7 + 8 + 9 + 10.25 + 11 + 12 + 13) return 1;
    if (variadic(3, 1.5, 2.5, 3.5) != 7.5) return 2;
    if (!throws_when(false) || !is_caught()) return 3;
  }
  auto* found = reinterpret_cast<decltype(&variadic)>(dlsym(RTLD_DEFAULT, "variadic"));
  if (found == nullptr || found(2, 1.0, 2.0) != 3.0) return 4;
  std::puts("done");
  return 0;
}
