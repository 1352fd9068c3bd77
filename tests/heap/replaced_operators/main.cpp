// Why: many programs replace operator new(size_t) and operator delete(void*) alone, to count or to put a header in
// front of each block. The standard's other forms then call those two; a preload that answers them itself would free
// such a block into its own heap: an address inside one of its blocks, which nobody notices until it is handed out.
#include <new>

#include "behaviour.hpp"

// Not declared by a compiler without sized deallocation.
void operator delete(void* block, std::size_t) noexcept;
void operator delete[](void* block, std::size_t) noexcept;

namespace {

constexpr std::size_t header = 32;
constexpr std::size_t size = 40;
int made = 0;
int gone = 0;
bool refuse = false;

}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wsized-deallocation"
#endif

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  auto* const block = refuse ? nullptr : static_cast<char*>(std::malloc(header + bytes));
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  ++made;
  return block + header;
}

void operator delete(void* block) noexcept {
  if (block != nullptr) {
    ++gone;
    std::free(static_cast<char*>(block) - header);
  }
}

int main() {
  using behaviour::require;
  for (int round = 1; round <= 1000; ++round) {
    made = gone = 0;
    void* block = ::operator new(size);
    ::operator delete(block, size);
    block = ::operator new(size);
    ::operator delete(block, std::nothrow);
    block = ::operator new(size, std::nothrow);
    ::operator delete(block);
    block = ::operator new[](size);
    ::operator delete[](block);
    block = ::operator new[](size);
    ::operator delete[](block, size);
    block = ::operator new[](size);
    ::operator delete[](block, std::nothrow);
    block = ::operator new[](size, std::nothrow);
    ::operator delete[](block);
    require(made == 7, "a form of operator new does not come to the program's own");
    require(gone == 7, "a form of operator delete does not come to the program's own");
  }
  refuse = true;
  const void* const one = ::operator new(size, std::nothrow);
  const void* const many = ::operator new[](size, std::nothrow);
  require(one == nullptr && many == nullptr, "nothrow new gives a block though the program's own operator new throws");
  // The aligned forms, which the program does not replace, are the heap's.
  constexpr std::align_val_t alignment{64};
  void* block = ::operator new(size, alignment);
  ::operator delete(block, alignment);
  block = ::operator new[](size, alignment);
  ::operator delete[](block, alignment);
  require(made == 7 && gone == 7, "an aligned form comes to an operator that knows nothing of alignment");
  behaviour::require_sound_heap();
}
