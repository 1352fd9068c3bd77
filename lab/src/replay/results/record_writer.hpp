// Writes rows of what threads measured, while they follow their records and after.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::replay {

/// Takes its memory when it is constructed; later members take none. One thread at a time.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;

  /// Writes the rows of at most about `most` records that are over. Returns how many records it passed. Throws
  /// journal::Error when the disk is full.
  virtual std::uint64_t advance(std::uint64_t most) = 0;

  /// So many of the thread's records have been passed and are no longer needed.
  [[nodiscard]] virtual std::uint64_t written(std::size_t thread) const = 0;
};

}  // namespace blockyard::replay
