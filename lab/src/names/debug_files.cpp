#include "names/debug_files.hpp"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "names/pe_file.hpp"

namespace blockyard::names {
namespace {

namespace fs = std::filesystem;

bool may_have_code(const fs::path& path) {
  char first[SELFMAG] = {};
  std::ifstream(path, std::ios::binary).read(first, sizeof first);
  return std::memcmp(first, ELFMAG, SELFMAG) == 0 || std::memcmp(first, "MZ", 2) == 0;
}

}  // namespace

std::string build_id_of(const std::string& path) {
  if (is_pe(path)) return pe_build_id(path);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  elf_version(EV_CURRENT);
  std::string text;
  if (Elf* elf = elf_begin(file, ELF_C_READ_MMAP, nullptr); elf != nullptr) {
    const void* bytes = nullptr;
    const ssize_t size = elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &bytes) : 0;
    constexpr char digits[] = "0123456789abcdef";
    for (ssize_t i = 0; i < size; ++i) {
      const unsigned char byte = static_cast<const unsigned char*>(bytes)[i];
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
    elf_end(elf);
  }
  ::close(file);
  return text;
}

const std::vector<std::string>& DebugFiles::with_build_id(const std::string& build_id) {
  if (!scanned_) scan();
  const auto found = by_build_id_.find(build_id);
  return found == by_build_id_.end() ? none_ : found->second;
}

void DebugFiles::scan() {
  scanned_ = true;
  for (const std::string& folder : folders_) {
    std::error_code error;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
    for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
      std::error_code unreadable;
      if (!at->is_regular_file(unreadable) || !may_have_code(at->path())) continue;
      const std::string path = fs::absolute(at->path(), unreadable).string();
      const std::string build_id = build_id_of(path);
      if (!build_id.empty()) by_build_id_[build_id].push_back(path);
    }
  }
  for (auto& [build_id, paths] : by_build_id_) {
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  }
}

}  // namespace blockyard::names
