/// Allocators named after how long a block lives, for C++. lifetime.h has what each lifetime promises, its bounds and
/// failures.
///
///   blockyard::temp_scope scope;
///   std::span<float> weights = blockyard::make_span<float>(count, blockyard::Lifetime::temp);
///   Job* job = blockyard::make<Job>(blockyard::Lifetime::temp_job, target);
///   std::pmr::vector<int> found(blockyard::temp_resource());
#ifndef BLOCKYARD_LIFETIME_HPP
#define BLOCKYARD_LIFETIME_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "blockyard/detail/on_throw.hpp"
#include "blockyard/lifetime.h"
#include "blockyard/temp.hpp"
#include "blockyard/temp_cursor.hpp"
#include "blockyard/temp_job.hpp"

namespace blockyard {

enum class Lifetime { temp = BY_TEMP, temp_job = BY_TEMP_JOB, persistent = BY_PERSISTENT };

/// Allocates `size` bytes, contents unspecified. nullptr on failure, with errno as in lifetime.h. O(1).
[[nodiscard]] inline void* allocate(std::size_t size, std::size_t alignment, Lifetime lifetime) noexcept {
  if (lifetime == Lifetime::temp) {
    return temp_allocate(size, alignment);
  }
  if (lifetime == Lifetime::temp_job) {
    return temp_job_allocate(size, alignment);
  }
  return by_lifetime_alloc(size, alignment, static_cast<by_lifetime>(lifetime));
}

/// Frees a block. `lifetime` is the one it was allocated with. nullptr is a no-op. O(1).
inline void deallocate(void* block, Lifetime lifetime) noexcept {
  if (lifetime == Lifetime::temp) {
    temp_deallocate(block);
  } else if (lifetime == Lifetime::temp_job) {
    temp_job_deallocate(block);
  } else {
    by_lifetime_free(block, static_cast<by_lifetime>(lifetime));
  }
}

/// Resizes a block, as by_lifetime_realloc().
[[nodiscard]] inline void* reallocate(void* block, std::size_t old_size, std::size_t size, std::size_t alignment,
                                      Lifetime lifetime) noexcept {
  return by_lifetime_realloc(block, old_size, size, alignment, static_cast<by_lifetime>(lifetime));
}

/// Makes a T. nullptr when memory is exhausted. When T's constructor throws, the block is freed. The end of a frame
/// does not destroy temp objects: their memory goes.
template <class T, class... Arguments>
[[nodiscard]] T* make(Lifetime lifetime, Arguments&&... arguments) {
  static_assert(alignof(T) <= max_alignment);
  void* const room = allocate(sizeof(T), alignof(T), lifetime);
  if (room == nullptr) {
    return nullptr;
  }
  block::OnThrow on_throw([=] { deallocate(room, lifetime); });
  T* const made = ::new (room) T(std::forward<Arguments>(arguments)...);
  on_throw.done();
  return made;
}

/// Destroys an object that make() made, and frees its block. nullptr is a no-op.
template <class T>
void destroy(T* object, Lifetime lifetime) noexcept {
  if (object != nullptr) {
    std::destroy_at(object);
    deallocate(object, lifetime);
  }
}

/// Allocates `count` objects, not initialised. An empty span without address when memory is exhausted or the size
/// overflows. deallocate(span.data(), lifetime) frees it.
template <class T>
requires std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>
[[nodiscard]] std::span<T> make_span(std::size_t count, Lifetime lifetime) noexcept {
  static_assert(alignof(T) <= max_alignment);
  if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
    return {};
  }
  T* const first = static_cast<T*>(allocate(count * sizeof(T), alignof(T), lifetime));
  return first == nullptr ? std::span<T>() : std::span<T>(first, count);
}

namespace lifetime {
/// Ends the process with a sentence: a temp_span was used after its frame, or on another thread.
[[noreturn]] BY_API void report_stale_span(const void* data) noexcept;
}  // namespace lifetime

/// A span of temp memory that knows its frame. In code compiled with BLOCKYARD_CHECKED, a use after that frame or on
/// another thread ends the process with a sentence; other code does not check.
template <class T>
class temp_span {
 public:
  temp_span() = default;
  explicit temp_span(std::size_t count) noexcept
      : span_(make_span<T>(count, Lifetime::temp)), frame_(by_temp_frame()) {}

  [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
  [[nodiscard]] bool empty() const noexcept { return span_.empty(); }
  [[nodiscard]] std::span<T> get() const noexcept {
    check();
    return span_;
  }
  [[nodiscard]] T* data() const noexcept { return get().data(); }
  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return get()[index]; }
  [[nodiscard]] T* begin() const noexcept { return data(); }
  [[nodiscard]] T* end() const noexcept { return data() + size(); }

 private:
  void check() const noexcept {
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
    if (span_.data() != nullptr && frame_ != by_temp_frame()) {
      lifetime::report_stale_span(span_.data());
    }
#endif
  }

  std::span<T> span_;
  std::uint64_t frame_ = 0;
};

/// A lifetime as a std::pmr::memory_resource. allocate() throws std::bad_alloc on failure. The resources are never
/// destroyed. A container on temp_resource() must be destroyed before the frame ends.
[[nodiscard]] BY_API std::pmr::memory_resource* temp_resource() noexcept;
[[nodiscard]] BY_API std::pmr::memory_resource* temp_job_resource() noexcept;
[[nodiscard]] BY_API std::pmr::memory_resource* persistent_resource() noexcept;

}  // namespace blockyard

#endif
