// A shared mapping can be copied by mremap() with an old size of 0, and the copy may be longer: it shows what follows
// in the file. So no file needs to stay open in the program.
#include "record/linux/mapped.hpp"

#include <sys/mman.h>

namespace blockyard::record {
namespace {

// Maps `bytes` of the region behind the part whose last page is `page`.
void* map_behind(void* page, std::uint64_t bytes) {
  void* copy = mremap(page, 0, page_bytes + bytes, MREMAP_MAYMOVE);
  if (copy == MAP_FAILED) return nullptr;
  munmap(copy, page_bytes);
  return static_cast<std::byte*>(copy) + page_bytes;
}

void* last_page(void* begin, std::uint64_t bytes) { return static_cast<std::byte*>(begin) + bytes - page_bytes; }

}  // namespace

Slot* Mapped::take_slot(std::uint32_t tid) {
  if (control->slots_free.load(std::memory_order_acquire) != 0) {
    for (Slot* slot = first_slot; slot != nullptr; slot = slot->next) {
      if (slot->owner.load(std::memory_order_acquire) != 0) continue;
      control->slots_free.fetch_sub(1);
      slot->serial.fetch_add(1);
      slot->owner.store(tid, std::memory_order_release);
      return slot;
    }
  }
  const std::uint32_t index = control->slots_used.load(std::memory_order_relaxed);
  if (index == control->slot_count) return nullptr;
  const std::uint64_t bytes = Layout(*control).slot_bytes();
  void* page = last_slot == nullptr ? static_cast<void*>(control) : last_page(last_slot, bytes);
  auto* slot = static_cast<Slot*>(map_behind(page, bytes));
  if (slot == nullptr) return nullptr;
  (last_slot == nullptr ? first_slot : last_slot->next) = slot;
  last_slot = slot;
  slot->serial.fetch_add(1);
  slot->owner.store(tid, std::memory_order_release);
  control->slots_used.store(index + 1, std::memory_order_release);
  return slot;
}

std::uint64_t* Mapped::take_large(std::uint32_t& number) {
  const std::uint64_t free = control->large_free.load(std::memory_order_acquire);
  if (free != 0) {
    const auto index = static_cast<std::uint32_t>(__builtin_ctzll(free));
    control->large_free.fetch_and(~(std::uint64_t{1} << index));
    number = index + 1;
    return large[index];
  }
  const std::uint32_t index = control->large_used.load(std::memory_order_relaxed);
  if (index == control->large_count) return nullptr;
  const std::uint64_t bytes = Layout(*control).large_bytes();
  void* page = index == 0 ? empty_page : last_page(large[index - 1], bytes);
  auto* ring = static_cast<std::uint64_t*>(map_behind(page, bytes));
  if (ring == nullptr) return nullptr;
  large[index] = ring;
  control->large_used.store(index + 1);
  number = index + 1;
  return ring;
}

void Mapped::unmap(bool with_control) {
  const Layout layout(*control);
  for (std::uint64_t* ring : large) {
    if (ring != nullptr) munmap(ring, layout.large_bytes());
  }
  for (Slot* slot = first_slot; slot != nullptr;) {
    Slot* const next = slot->next;
    munmap(slot, layout.slot_bytes());
    slot = next;
  }
  munmap(empty_page, page_bytes);
  if (with_control) munmap(control, page_bytes);
  *this = Mapped{};
}

}  // namespace blockyard::record
