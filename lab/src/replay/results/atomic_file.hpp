// A file that appears under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::replay {

/// Written to `PATH.part` beside its place, renamed by commit(); without commit() it leaves nothing. Every member
/// throws journal::Error with the path and the system's reason (a full disk, a folder that can't be written).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends; buffered (1 MiB).
  void write(const void* bytes, std::size_t count);
  /// Overwrites bytes that were already appended.
  void write_at(std::uint64_t offset, const void* bytes, std::size_t count);
  /// Where the next write() goes.
  [[nodiscard]] std::uint64_t offset() const { return flushed_ + buffered_; }
  /// Puts the whole file in its place.
  void commit();

 private:
  void flush();
  void write_fully(const void* bytes, std::size_t count, std::uint64_t offset);
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::string part_;
  std::vector<char> buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t flushed_ = 0;
  int file_ = -1;
};

/// Makes the folder and those above it. Throws journal::Error.
void make_folder(const std::string& path);

}  // namespace blockyard::replay
