#include "unwind/trie.hpp"

#include <sys/mman.h>

namespace blockyard::unwind {

std::uint32_t Trie::add(std::uint64_t digest) {
  if (count_ == most_nodes) return no_node;
  if ((table_ == nullptr || (count_ + 1) * std::size_t{2} > mask_ + 1) && !grow()) return no_node;
  std::size_t place = digest & mask_;
  while (table_[place].node != no_node) place = (place + 1) & mask_;
  table_[place] = {digest, ++count_};
  return count_;
}

bool Trie::grow() {
  constexpr std::size_t huge_page = std::size_t{1} << 21;
  const std::size_t capacity = table_ == nullptr ? first_capacity : 2 * (mask_ + 1);
  void* memory = mmap(nullptr, capacity * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  // A table of many stacks is read at random: in small pages each look-up would miss the TLB.
  if (capacity * sizeof(Entry) >= huge_page) madvise(memory, capacity * sizeof(Entry), MADV_HUGEPAGE);
  Entry* const old = table_;
  const std::size_t old_capacity = table_ == nullptr ? 0 : mask_ + 1;
  table_ = static_cast<Entry*>(memory);
  mask_ = capacity - 1;
  for (std::size_t i = 0; i < old_capacity; ++i) {
    if (old[i].node == no_node) continue;
    std::size_t place = old[i].digest & mask_;
    while (table_[place].node != no_node) place = (place + 1) & mask_;
    table_[place] = old[i];
  }
  if (old != nullptr) munmap(old, old_capacity * sizeof(Entry));
  return true;
}

void Trie::clear() {
  if (table_ != nullptr) munmap(table_, (mask_ + 1) * sizeof(Entry));
  table_ = nullptr;
  mask_ = 0;
  count_ = 0;
}

}  // namespace blockyard::unwind
