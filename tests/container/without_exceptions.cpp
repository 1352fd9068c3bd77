// Why: engines compile without exceptions and type information. Every header must do, and what it offers must work.
#include <cstdio>
#include <functional>
#include <string>
#include <utility>

#include "blockyard/blockyard.hpp"
#include "container/paged_nodes.hpp"

namespace {

struct Part {
  explicit Part(std::string its_name) : name(std::move(its_name)) {}  // may throw, where anything can
  std::string name;
};

template <class Blocks>
bool containers_work() {
  blockyard::List<std::string, Blocks> list{"b", "a"};
  blockyard::HashMap<std::string, int, blockyard::HasherDefault, blockyard::ComparatorDefault<std::string>, Blocks> map;
  blockyard::RBMap<std::string, int, std::less<std::string>, Blocks> tree;
  for (int i = 0; i < 1'000; ++i) {
    map[std::to_string(i)] = i;
    tree[std::to_string(i)] = i;
  }
  list.sort();
  const auto moved = std::move(list);
  return moved.front()->get() == "a" && map.erase("7") && tree.erase("7") && map.size() == 999 && tree.size() == 999;
}

template <class Allocator>
bool makes_and_destroys(Allocator&& parts) {
  Part* const part = parts.create("wheel");
  const bool made = part->name == "wheel";
  parts.destroy(part);
  return made;
}

bool lifetimes_work() {
  using blockyard::Lifetime;
  Part* const part = blockyard::make<Part>(Lifetime::temp_job, "door");
  blockyard::destroy(part, Lifetime::temp_job);
  blockyard::rewindable arena;
  const std::pmr::string name("a name that does not fit the string", &arena);
  blockyard::allocator<int> numbers;
  int* const both = numbers.allocate(2);
  numbers.deallocate(both, 2);
  return !blockyard::make_span<int>(10, Lifetime::temp).empty() && arena.statistics().used_bytes > 0;
}

}  // namespace

int main() {
  const bool work = containers_work<blockyard::StaticBlocks>() && containers_work<blockyard::DirectBlocks>() &&
                    containers_work<blockyard::PagedNodes>() && lifetimes_work() &&
                    makes_and_destroys(blockyard::TypedStaticBlockAllocator<Part>()) &&
                    makes_and_destroys(blockyard::PagedAllocator<Part>());
  std::puts(work ? "all of it works" : "FAILED");
  return work ? 0 : 1;
}
