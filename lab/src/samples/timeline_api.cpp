// The C interface to timelines: translates, and lets no exception out.
#include <new>

#include "samples/samples.h"
#include "samples/timeline.hpp"

using namespace blockyard::samples;

struct by_samples_timeline : Timeline {};

extern "C" {

by_samples_timeline* by_samples_timeline_read(const void* rows, uint64_t count, uint64_t bin_ns, uint64_t longest_ns,
                                              by_samples_timeline_facts* facts) try {
  auto* found = new by_samples_timeline{timeline({static_cast<const Row*>(rows), count}, bin_ns, longest_ns)};
  *facts = {found->latest_ns, found->end_event, found->mallocs.size(), found->by_thread.size()};
  return found;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void by_samples_timeline_delete(by_samples_timeline* timeline) { delete timeline; }

const uint64_t* by_samples_timeline_column(const by_samples_timeline* timeline, uint32_t column) {
  const std::vector<std::uint64_t>* columns[] = {&timeline->mallocs, &timeline->frees, &timeline->first_event,
                                                 &timeline->by_thread};
  return columns[column]->data();
}

void by_samples_first_events(const void* rows, uint64_t count, uint32_t thread, const double* boundaries_ns,
                             size_t boundary_count, uint64_t* found) {
  first_events({static_cast<const Row*>(rows), count}, thread, {boundaries_ns, boundary_count},
               {found, boundary_count});
}

}  // extern "C"
