/// blockyard::rewindable: an arena whose blocks all end at its rewind, for a level or a match, as a
/// std::pmr::memory_resource. by_rewindable_* in lifetime.h has its bounds and the rule for rewinding.
#ifndef BLOCKYARD_REWINDABLE_HPP
#define BLOCKYARD_REWINDABLE_HPP

#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "blockyard/detail/type_record.hpp"
#include "blockyard/lifetime.h"

namespace blockyard {

/// Any thread may allocate. One thread rewinds, while no thread allocates. deallocate() does nothing.
class rewindable : public std::pmr::memory_resource {
 public:
  /// `bytes` as in by_rewindable_create(). Throws std::bad_alloc when memory is exhausted.
  explicit rewindable(std::size_t bytes = 0) : arena_(by_rewindable_create(bytes, nullptr)) {
    block::or_bad_alloc(arena_);
  }
  /// Takes its memory from `parent`, which must outlive it. Invalid once the parent rewinds.
  rewindable(rewindable& parent, std::size_t bytes) : arena_(by_rewindable_create(bytes, parent.arena_)) {
    block::or_bad_alloc(arena_);
  }
  ~rewindable() override { by_rewindable_destroy(arena_); }
  rewindable(const rewindable&) = delete;
  rewindable& operator=(const rewindable&) = delete;

  /// Throws std::bad_alloc on failure.
  using std::pmr::memory_resource::allocate;
  /// nullptr on failure, with errno as for by_rewindable_alloc().
  [[nodiscard]] void* try_allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
    return by_rewindable_alloc(arena_, size, alignment);
  }
  /// Makes a T. nullptr on failure. A rewind does not destroy it: its memory goes.
  template <class T, class... Arguments>
  [[nodiscard]] T* make(Arguments&&... arguments) {
    void* const room = try_allocate(sizeof(T), alignof(T));
    return room == nullptr ? nullptr : ::new (room) T(std::forward<Arguments>(arguments)...);
  }
  /// Allocates `count` objects, not initialised. An empty span without address on failure or when the size overflows.
  template <class T>
  requires std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>
  [[nodiscard]] std::span<T> make_span(std::size_t count) noexcept {
    const bool overflows = count > std::numeric_limits<std::size_t>::max() / sizeof(T);
    void* const first = overflows ? nullptr : try_allocate(count * sizeof(T), alignof(T));
    return first == nullptr ? std::span<T>() : std::span<T>(static_cast<T*>(first), count);
  }
  /// Ends every block and keeps the memory. O(pieces).
  void rewind() noexcept { by_rewindable_rewind(arena_); }
  /// Whether no arena above it was rewound since it was made.
  [[nodiscard]] bool valid() const noexcept { return by_rewindable_is_valid(arena_) != 0; }
  [[nodiscard]] by_rewindable_statistics statistics() const noexcept {
    by_rewindable_statistics result;
    by_rewindable_get_statistics(arena_, &result);
    return result;
  }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    return block::or_bad_alloc(try_allocate(size, alignment));
  }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  by_rewindable* arena_;
};

}  // namespace blockyard

#endif
