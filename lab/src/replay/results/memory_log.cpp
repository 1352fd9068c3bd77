#include "replay/results/memory_log.hpp"

#include "replay/results/npy.hpp"

namespace blockyard::replay {
namespace {

constexpr const char* memory_fields =
    "[('time', '<u8'), ('resident', '<u8'), ('live', '<u8'), ('blocks', '<u8'), ('minor_faults', '<u8'), "
    "('cpu_ns', '<u8'), ('background_cpu_ns', '<u8')]";

}  // namespace

void write_memory(const std::string& folder, std::span<const MemoryRow> rows) {
  write_npy(folder + "/memory.npy", memory_fields, rows);
}

}  // namespace blockyard::replay
