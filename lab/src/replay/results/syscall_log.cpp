#include "replay/results/syscall_log.hpp"

#include <algorithm>
#include <span>
#include <tuple>

#include "replay/results/npy.hpp"

namespace blockyard::replay {
namespace {

constexpr const char* syscall_fields =
    "[('event', '<u4'), ('thread', '<u2'), ('call', '<u2'), ('errors', '<u4'), ('count', '<u4'), ('ns', '<u8')]";

auto key(const SyscallRow& row) { return std::tuple(row.event, row.thread, row.call); }

}  // namespace

std::vector<SyscallRow> merged(std::vector<SyscallRow> rows) {
  std::sort(rows.begin(), rows.end(), [](const SyscallRow& a, const SyscallRow& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (const SyscallRow& row : rows) {
    if (kept != 0 && key(rows[kept - 1]) == key(row)) {
      rows[kept - 1].errors += row.errors;
      rows[kept - 1].count += row.count;
      rows[kept - 1].ns += row.ns;
    } else {
      rows[kept++] = row;
    }
  }
  rows.resize(kept);
  return rows;
}

void write_syscalls(const std::string& folder, const std::vector<SyscallRow>& rows) {
  write_npy(folder + "/syscalls.npy", syscall_fields, std::span(rows));
}

}  // namespace blockyard::replay
