// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace blockyard::replay {

/// Written to `PATH.part`, renamed by commit(), and removed without commit(). Every member throws journal::Error with
/// the path and the system's reason (a full disk, a folder that can't be written).
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends; buffered (1 MiB).
  void write(const void* bytes, std::size_t count);
  /// Overwrites bytes that were appended before.
  void write_at(std::uint64_t offset, const void* bytes, std::size_t count);
  /// Where the next write() goes.
  [[nodiscard]] std::uint64_t offset() const { return flushed_ + buffered_; }
  /// Gives the complete file its name.
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

/// Makes the folder and its parents. Throws journal::Error.
void make_folder(const std::string& path);

}  // namespace blockyard::replay
