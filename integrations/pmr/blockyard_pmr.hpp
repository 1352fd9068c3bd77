/// std::pmr containers on Blockyard's heap, temp memory or pools, with a tag:
///
///   blockyard::tagged_resource ai("ai");                                  // the heap
///   blockyard::tagged_resource frame("frame", blockyard::temp_resource());  // gone with the frame
///   blockyard::block_resource blocks(&ai);                                // a pool on top of it
///   std::pmr::vector<Enemy> enemies(&ai);
///
/// Each block has the resource's tag below the tags of the thread.
#ifndef BLOCKYARD_PMR_HPP
#define BLOCKYARD_PMR_HPP

#include <cstddef>
#include <memory_resource>

#include "blockyard/lifetime.hpp"
#include "blockyard/tag.hpp"

namespace blockyard {

/// Hands on to `upstream`, which must outlive it, and is as thread-safe.
class tagged_resource : public std::pmr::memory_resource {
 public:
  /// `name` must stay unchanged while this lives.
  explicit tagged_resource(const char* name, std::pmr::memory_resource* upstream = persistent_resource()) noexcept
      : name_(name), upstream_(upstream) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const tag its(name_);
    return upstream_->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    const tag its(name_);
    upstream_->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  const char* name_;
  std::pmr::memory_resource* upstream_;
};

}  // namespace blockyard
#endif
