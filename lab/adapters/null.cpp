/// null: the floor. Every allocation returns the same populated buffer and every free does nothing, so a replay
/// measures the clock and the call. Blocks overlap and calloc's is not zero: contents have no meaning here.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "support/setup.hpp"

namespace {

using blockyard::adapters::fail;

// The buffer is as long as the largest possible block (never larger than the peak) and aligned to 1 GiB. All of it is
// the same 1 MiB of memory, mapped again and again: touching it costs no fault and little cache.
constexpr size_t buffer_alignment = size_t{1} << 30;
constexpr size_t smallest_piece = size_t{1} << 20;
constexpr size_t most_pieces = 4096;

char* buffer = nullptr;

void* allocate(size_t) { return buffer; }
void* allocate_aligned(size_t, size_t) { return buffer; }
void* reallocate(void*, size_t, size_t, size_t) { return buffer; }
void release(void*) {}

bool map_buffer(size_t bytes) {
  size_t piece = smallest_piece;
  while (piece * most_pieces < bytes) piece *= 2;
  const size_t size = (bytes + piece - 1) / piece * piece;
  const int memory = memfd_create("blockyard-null", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, static_cast<off_t>(piece)) != 0) return false;
  void* reserved =
      mmap(nullptr, size + buffer_alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  const auto base = (reinterpret_cast<uintptr_t>(reserved) + buffer_alignment - 1) & ~(buffer_alignment - 1);
  for (size_t at = 0; at < size; at += piece) {
    void* place = reinterpret_cast<void*>(base + at);
    if (mmap(place, piece, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, memory, 0) == MAP_FAILED)
      return false;
  }
  close(memory);
  buffer = reinterpret_cast<char*>(base);
  return true;
}

int init(const by_adapter_setup* setup) {
  if (blockyard::adapters::check_abi(*setup) != 0) return 1;
  // The largest block may be reallocated while the peak is measured without its new size: twice the peak covers it.
  const uint64_t bytes = std::max<uint64_t>(2 * setup->peak_bytes, smallest_piece);
  return map_buffer(bytes) ? 0 : fail(*setup, "the system has no memory for a buffer as large as the journal's peak");
}

constexpr by_adapter adapter = blockyard::adapters::described({
    .name = "null",
    .version = BLOCKYARD_VERSION,
    .init = init,
    .allocate = allocate,
    .allocate_zeroed = allocate,
    .allocate_aligned = allocate_aligned,
    .reallocate = reallocate,
    .free = release,
});

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() { return &adapter; }
