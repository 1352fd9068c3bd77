// The invariant walker of the page heap.
#include <array>
#include <mutex>

#include "heap/page_heap.hpp"

namespace blockyard::heap {

const char* PageHeap::check() {
  const std::lock_guard hold(lock_);
  std::array<std::uint64_t, 3> runs{};
  std::uint64_t reserve = 0;
  std::uint64_t in_work = 0;
  PageState before = PageState::inner;
  for (std::uint32_t page = 0; page < top_;) {
    const PageTag& head = tag(page);
    const auto state = static_cast<PageState>(head.state);
    if (state == PageState::inner || head.length == 0 || head.length > top_ - page) {
      return "a run of pages has no valid tag at its first page";
    }
    const PageTag& tail = tag(page + head.length - 1);
    const PageState expected = is_free(state) || head.length == 1 ? state : PageState::inner;
    if (tail.length != head.length || static_cast<PageState>(tail.state) != expected) {
      return "the tags at the two ends of a run of pages differ";
    }
    for (std::uint32_t inner = page + 1; inner + 1 < page + head.length; ++inner) {
      if (static_cast<PageState>(tag(inner).state) != PageState::inner) {
        return "a page inside a run is marked as the end of one";
      }
    }
    if (is_free(state)) {
      if (state == before) {
        return "two free runs of one state touch without being merged";
      }
      ++runs[index_of(state)];
      reserve += state == PageState::free_ready && head.length >= reserve_run ? head.length : 0;
    }
    in_work += state == PageState::in_work ? head.length : 0;
    before = state;
    page += head.length;
  }
  std::uint64_t listed_in_work = 0;
  for (std::uint32_t run = first_in_work_; run != 0; run = tag(run).next) {
    if (static_cast<PageState>(tag(run).state) != PageState::in_work) {
      return "a run stands among those in work that is not";
    }
    listed_in_work += tag(run).length;
  }
  if (in_work != pages_in_work_ || in_work != listed_in_work) {
    return "the count of pages in work differs from the runs";
  }
  if (reserve != reserve_pages_) {
    return "the count of reserve pages differs from the runs";
  }
  for (unsigned index = 0; index < 3; ++index) {
    const auto state = static_cast<std::uint8_t>(index + static_cast<unsigned>(PageState::free_ready));
    if (const char* const broken = free_[index].check(state, runs[index]); broken != nullptr) {
      return broken;
    }
  }
  return nullptr;
}

}  // namespace blockyard::heap
