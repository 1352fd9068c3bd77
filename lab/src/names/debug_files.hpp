// Finds files by build-id: the id that the linker gives to each build of a program or library.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace blockyard::names {

/// The build-id of an ELF file, or what pe_build_id() says of one of Windows, as lower-case hexadecimal text; empty
/// when it has none or is neither. Opens and reads the file.
std::string build_id_of(const std::string& path);

/// The ELF files and those of Windows below folders that the user named. Looks at them when it is first asked. One
/// thread at a time.
class DebugFiles {
 public:
  explicit DebugFiles(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  /// Files with this build-id, those with debug information or a symbol table among them, in path order; empty when
  /// there are none.
  const std::vector<std::string>& with_build_id(const std::string& build_id);
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  void scan();

  std::vector<std::string> folders_;
  bool scanned_ = false;
  std::map<std::string, std::vector<std::string>> by_build_id_;
  std::vector<std::string> none_;
};

}  // namespace blockyard::names
