// Reads a plan file and trusts no number in it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "replay/plan/plan_format.hpp"

namespace blockyard::replay {

/// An open plan. Its header and tables are in memory, its ops are read on demand. One thread may use it at a time,
/// except for for_each_preamble(), which any thread may call. Throws journal::Error when the file is no plan, cut
/// short, of another version or damaged.
class PlanFile {
 public:
  explicit PlanFile(const std::string& path);
  ~PlanFile();
  PlanFile(const PlanFile&) = delete;
  PlanFile& operator=(const PlanFile&) = delete;

  [[nodiscard]] const PlanHeader& header() const { return header_; }
  [[nodiscard]] std::span<const PlanThread> threads() const { return threads_; }
  /// Event number of each frame mark of the stretch, ascending.
  [[nodiscard]] std::span<const std::uint32_t> frames() const { return frames_; }
  /// The same of each phase mark; the first may lie before the stretch.
  [[nodiscard]] std::span<const std::uint32_t> phases() const { return phases_; }
  /// Empty for a plan without routes, as are the two below.
  [[nodiscard]] std::span<const PlanRoute> routes() const { return routes_; }
  /// Of each rewindable route, how many of its blocks have been freed when its arena is rewound, ascending.
  [[nodiscard]] std::span<const std::uint64_t> generations() const { return generations_; }
  /// Of each group of slots; `none` for those without.
  [[nodiscard]] std::span<const std::uint32_t> routes_of_groups() const { return routes_of_groups_; }

  /// Calls `visit` with one chunk of the thread's ops after another. Each op is checked: a slot, kind or alignment that
  /// would lead a replay astray is an error here.
  void for_each_chunk(std::size_t thread, const std::function<void(std::span<const Op>)>& visit) const;

  /// The plan's chunks are numbered thread after thread.
  [[nodiscard]] std::uint64_t ops_in_chunk(std::size_t chunk) const { return chunks_[chunk].ops; }
  /// Reads the chunk's ops into room for `chunk_ops` and checks each. Allocates nothing unless it throws.
  void read_chunk(std::size_t chunk, Op* ops) const;

  /// Calls `visit` for each block of the thread's preamble. Reads through 4 KiB of the caller's stack and allocates
  /// nothing. The ops were checked when the plan was opened.
  template <typename Visit>
  void for_each_preamble(std::size_t thread, Visit visit) const {
    Op ops[170];
    const PlanThread& entry = threads_[thread];
    std::uint64_t offset = entry.preamble_offset;
    for (std::uint64_t left = entry.preamble_ops; left != 0;) {
      const std::size_t count = left < std::size(ops) ? left : std::size(ops);
      if (!read(offset, ops, count * sizeof(Op))) break;
      for (std::size_t i = 0; i < count; ++i) visit(ops[i]);
      offset += count * sizeof(Op);
      left -= count;
    }
  }

 private:
  [[noreturn]] void damaged(const char* how) const;
  bool read(std::uint64_t offset, void* bytes, std::size_t count) const;
  [[nodiscard]] bool is_sound(const Op& op) const;
  void read_tables();
  void check_routes() const;
  void check_preambles() const;

  std::string path_;
  int file_ = -1;
  PlanHeader header_{};
  std::vector<PlanThread> threads_;
  std::vector<PlanChunk> chunks_;
  std::vector<std::uint32_t> frames_;
  std::vector<std::uint32_t> phases_;
  std::vector<PlanRoute> routes_;
  std::vector<std::uint64_t> generations_;
  std::vector<std::uint32_t> routes_of_groups_;
};

}  // namespace blockyard::replay
