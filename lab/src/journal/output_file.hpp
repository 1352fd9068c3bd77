// A tool's output: written beside its final place and renamed when complete. Failure and Ctrl-C leave nothing behind.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace blockyard::journal {

/// Chooses a temporary name beside `path`. A device or pipe is written in place. Throws Error when `path` exists and
/// `overwrite` is false, or when `path` is `input` (however both are spelled). One thread at a time, one object at a
/// time.
class OutputFile {
 public:
  OutputFile(const std::string& path, const std::string& input, bool overwrite);
  ~OutputFile();  ///< removes the temporary file unless commit() ran
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// The name to write to.
  const std::string& temporary() const { return temporary_; }
  /// Renames to the final name.
  void commit();

 private:
  std::string path_;
  std::string temporary_;
};

/// Writes bytes to a file. Throws Error, whose sentence contains `name`.
class ByteSink {
 public:
  /// Writes to `path`, over what is there, compressed when `name` ends in .zst or .gz; `path` may be the temporary name
  /// of `name`.
  static std::unique_ptr<ByteSink> create(const std::string& path, std::string_view name);
  /// The same, and never compresses.
  static std::unique_ptr<ByteSink> create_plain(const std::string& path, std::string_view name);
  virtual ~ByteSink() = default;
  virtual void write(std::string_view bytes) = 0;
  /// Writes what is still held back and closes.
  virtual void finish() = 0;
};

}  // namespace blockyard::journal
