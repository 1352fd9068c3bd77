// The real allocation functions: those of the next object that defines them, so that the recorder can be stacked on
// another preloaded allocator.
#pragma once

#include <cstddef>

namespace blockyard::record {

// Every hooked C function, once: name, result, parameters.
#define BLOCKYARD_REAL_FUNCTIONS(X)                          \
  X(malloc, void*, (std::size_t))                            \
  X(free, void, (void*))                                     \
  X(calloc, void*, (std::size_t, std::size_t))               \
  X(realloc, void*, (void*, std::size_t))                    \
  X(posix_memalign, int, (void**, std::size_t, std::size_t)) \
  X(aligned_alloc, void*, (std::size_t, std::size_t))        \
  X(memalign, void*, (std::size_t, std::size_t))             \
  X(valloc, void*, (std::size_t))                            \
  X(pvalloc, void*, (std::size_t))

struct RealFunctions {
#define BLOCKYARD_MEMBER(name, result, parameters) result(*name) parameters;
  BLOCKYARD_REAL_FUNCTIONS(BLOCKYARD_MEMBER)
#undef BLOCKYARD_MEMBER
};

/// Finds all of them, which else the first call of one does.
void find_real_functions();

/// Never null: each starts as a stub that finds all of them and then carries out the call.
extern RealFunctions real;

}  // namespace blockyard::record
