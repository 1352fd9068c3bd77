#include "heap/checked/trap.hpp"

#include <signal.h>

#include <cstddef>

#include "heap/checked/blocks.hpp"
#include "heap/checked/plain.hpp"
#include "heap/checked/report.hpp"
#include "pages/region.hpp"

namespace blockyard::heap::checked {
namespace {

struct sigaction before {};

void on_fault(int number, siginfo_t* facts, void*) {
  // Whatever comes of this, a second fault must not come back here.
  sigaction(number, &before, nullptr);
  const void* const address = facts->si_addr;
  if (facts->si_code != SEGV_ACCERR || !region.contains(address)) {
    return;  // the same instruction faults again, and meets what was there before
  }
  if (const void* const block = live_before(address); block != nullptr) {
    const Record& record = record_of(block);
    const auto* const plain = static_cast<const char*>(block) - record.lead;
    if (record.guarded != 0 && address < plain + by_plain_usable_size(plain)) {  // the guard page is its last
      report("a guard page was touched: beyond the end of a block", address, &record);
    }
  }
  // A freed guarded block begins somewhere before, on this page or one of its pages.
  const auto* unit = static_cast<const char*>(region.page_address(region.page_of(address))) +
                     (region.offset_of(address) % page_bytes) / block_alignment * block_alignment;
  for (std::size_t looked = 0; looked < std::size_t{1} << 16 && unit > region.base; ++looked, unit -= block_alignment) {
    const Record& record = record_of(unit);
    if (record.freed_by != 0 && record.guarded != 0) {
      report("a block was touched after it was freed", address, &record);
    }
  }
  report("a page of the heap was touched that nobody may touch", address, nullptr);
}

}  // namespace

void start_trap() {
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGSEGV, &ours, &before);
}

}  // namespace blockyard::heap::checked
