/// EASTL's containers on Blockyard's heap:
///
///   eastl::vector<Enemy, blockyard::eastl_allocator> enemies("enemies");
///
/// Blocks have the allocator's name as a tag, below the tags of the thread.
#ifndef BLOCKYARD_EASTL_HPP
#define BLOCKYARD_EASTL_HPP

#include <cstddef>

#include "blockyard/heap.h"
#include "blockyard/tag.hpp"

namespace blockyard {

/// All are equal: any may free what another allocated. `name` must stay unchanged while the allocator lives.
class eastl_allocator {
 public:
  explicit eastl_allocator(const char* name = "eastl") noexcept : name_(name) {}
  eastl_allocator(const eastl_allocator& other, const char* name) noexcept
      : name_(name != nullptr ? name : other.name_) {}

  void* allocate(std::size_t bytes, int = 0) {
    const tag its(name_);
    return by_malloc(bytes);
  }
  /// With an offset that is no multiple of the alignment it fails: nullptr.
  void* allocate(std::size_t bytes, std::size_t alignment, std::size_t offset, int = 0) {
    const tag its(name_);
    return offset % alignment == 0 ? by_aligned_alloc(alignment, bytes) : nullptr;
  }
  void deallocate(void* block, std::size_t bytes) {
    const tag its(name_);
    by_free_sized(block, bytes);
  }
  const char* get_name() const { return name_; }
  void set_name(const char* name) { name_ = name; }
  friend bool operator==(const eastl_allocator&, const eastl_allocator&) { return true; }
  friend bool operator!=(const eastl_allocator&, const eastl_allocator&) { return false; }

 private:
  const char* name_;
};

}  // namespace blockyard
#endif
