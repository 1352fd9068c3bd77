#include "heap/transfer/remote_frees.hpp"

#include <array>

#include "heap/bound.hpp"
#include "heap/front/slabs.hpp"

namespace blockyard::heap {

std::uint32_t adopt_pending(ThreadHeap* heap, std::uint32_t most) {
  // Two at a time, both lists taken before either is read: an exchange waits until every store before it has got its
  // line, and what an adoption writes is cold.
  struct Taken {
    std::uint32_t slice;
    base::RemoteBatch batch;
  };
  std::array<Taken, 2> taken;
  std::uint32_t adopted = 0;
  std::uint32_t some = 0;
  Bound<Loop::lists_adopted> lists(most);
  do {
    for (some = 0; some < taken.size() && adopted + some < most; ++some) {
      if (heap->taken == 0) {
        heap->taken = PendingStack::take(heap->pending);
        if (heap->taken == 0) {
          break;
        }
      }
      lists.turn();
      const std::uint32_t slice = heap->taken;
      RemoteFrees& entry = region.remote_frees[slice];
      prefetch_to_write(&region.slabs[slice]);
      heap->taken = entry.pending_next.load(std::memory_order_relaxed);
      taken[some] = {slice, RemoteList::adopt(entry.remote, entry.oldest)};
    }
    for (std::uint32_t each = 0; each < some; ++each) {
      adopt(heap, taken[each].slice, taken[each].batch);
    }
    adopted += some;
  } while (some == taken.size() && adopted < most);
  return adopted;
}

}  // namespace blockyard::heap
