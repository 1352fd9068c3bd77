#include "heap/depot.hpp"

namespace blockyard::heap {

constinit Depot process_depot;

void Depot::populate() {
  for (Ends& each : ends_) {
    touch_without_change(&each);
  }
  for (Magazine& each : magazines_) {
    touch_without_change(&each);
  }
}

void Depot::mend_in_child() {
  for (unsigned size_class = 0; size_class < depot_classes; ++size_class) {
    Ends& its = ends_[size_class];
    if (its.givers.given.load(std::memory_order_relaxed) != 0) {
      Ring::mend(its.givers.given, its.takers.taken, shift(size_class), Turns{*this, size_class},
                 [&](std::uint64_t from, std::uint64_t to) {
                   magazine(size_class, to).blocks = magazine(size_class, from).blocks;
                 });
    }
  }
}

}  // namespace blockyard::heap
