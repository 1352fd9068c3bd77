#include "heap/checked/trap.hpp"

#include <cstddef>

#include "base/process.hpp"
#include "heap/checked/blocks.hpp"
#include "heap/checked/plain.hpp"
#include "heap/pages/heap_region.hpp"

namespace blockyard::heap::checked {
namespace {

bool is_ours(const void* address) { return region.contains(address); }

void report_access(const void* address) {
  if (const void* const block = live_before(address); block != nullptr) {
    const Record& record = record_of(block);
    const auto* const plain = static_cast<const char*>(block) - record.lead;
    if (record.guarded != 0 && address < plain + by_plain_usable_size(plain)) {  // the guard page is its last
      report("a guard page was touched: beyond the end of a block", address, &record);
    }
  }
  // A freed guarded block begins somewhere before, on this page or one of its pages.
  const auto* unit = static_cast<const char*>(address) - region.offset_of(address) % block_alignment;
  for (std::size_t looked = 0; looked < std::size_t{1} << 16 && unit > region.base; ++looked, unit -= block_alignment) {
    const Record& record = record_of(unit);
    if (record.freed_by != 0 && record.guarded != 0) {
      report("a block was touched after it was freed", address, &record);
    }
  }
  report("a page of the heap was touched that nobody may touch", address, nullptr);
}

}  // namespace

void start_trap() { base::report_forbidden_accesses(is_ours, report_access); }

}  // namespace blockyard::heap::checked
