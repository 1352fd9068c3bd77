/// A program's own arena with rewind(), for a level or a match. Contract, bounds and the rule for rewinding:
/// by_rewindable_* in lifetime.h.
#ifndef BLOCKYARD_REWINDABLE_HPP
#define BLOCKYARD_REWINDABLE_HPP

#include <cstddef>
#include <memory_resource>
#include <new>

#include "blockyard/lifetime.h"

namespace blockyard {

/// Many threads may allocate; one rewinds, while none allocates. As a std::pmr::memory_resource it frees nothing before
/// the rewind.
class rewindable : public std::pmr::memory_resource {
 public:
  /// Throws std::bad_alloc when not even the arena's record can be had. `bytes` as in by_rewindable_create().
  explicit rewindable(std::size_t bytes = 0) : arena_(by_rewindable_create(bytes, nullptr)) { require(); }
  /// An arena inside of `parent`, which must outlive it; invalid once the parent is rewound.
  rewindable(rewindable& parent, std::size_t bytes) : arena_(by_rewindable_create(bytes, parent.arena_)) { require(); }
  ~rewindable() override { by_rewindable_destroy(arena_); }
  rewindable(const rewindable&) = delete;
  rewindable& operator=(const rewindable&) = delete;

  using std::pmr::memory_resource::allocate;
  /// nullptr on failure, errno says why.
  [[nodiscard]] void* try_allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    return by_rewindable_alloc(arena_, size, alignment);
  }
  void rewind() noexcept { by_rewindable_rewind(arena_); }
  [[nodiscard]] bool valid() const noexcept { return by_rewindable_is_valid(arena_) != 0; }
  [[nodiscard]] by_rewindable_statistics statistics() const noexcept {
    by_rewindable_statistics result;
    by_rewindable_get_statistics(arena_, &result);
    return result;
  }

 private:
  void require() const {
    if (arena_ == nullptr) {
      throw std::bad_alloc();
    }
  }
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    void* const block = try_allocate(size, alignment);
    if (block == nullptr) {
      throw std::bad_alloc();
    }
    return block;
  }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  by_rewindable* arena_;
};

}  // namespace blockyard

#endif
