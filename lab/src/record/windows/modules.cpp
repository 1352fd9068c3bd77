// Nothing here takes the loader's lock: a thread that holds it may wait for room in the ring.
#include "record/windows/modules.hpp"

#include <windows.h>

#include <psapi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace blockyard::record {
namespace {

std::string utf8(const wchar_t* text) {
  char bytes[4096];
  const int length = WideCharToMultiByte(CP_UTF8, 0, text, -1, bytes, sizeof bytes, nullptr, nullptr);
  std::string path(bytes, length > 0 ? static_cast<std::size_t>(length - 1) : 0);
  // Windows takes both, and whoever reads the journal elsewhere takes the last part for the name.
  std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

std::string path_of(HMODULE module) {
  wchar_t text[2048] = {};
  return GetModuleFileNameW(module, text, 2047) == 0 ? std::string() : utf8(text);
}

// The file behind a mapping; the program's own is known from the start.
std::string mapped_file(void* base) {
  wchar_t text[2048] = {};
  const std::string path = K32GetMappedFileNameW(GetCurrentProcess(), base, text, 2047) == 0 ? "" : utf8(text);
  constexpr std::string_view prefix = "/\?\?/";  // of the kernel's names
  return path.starts_with(prefix) ? path.substr(prefix.size()) : path;
}

// The module may go meanwhile: then this fails, and nothing faults.
template <class T>
bool read(std::uint64_t address, T& into) {
  SIZE_T done = 0;
  return ReadProcessMemory(GetCurrentProcess(), reinterpret_cast<const void*>(address), &into, sizeof into, &done) !=
             0 &&
         done == sizeof into;
}

template <class T>
void put_big_endian(ModuleFacts& facts, T value) {
  for (std::size_t shift = 8 * sizeof value; shift != 0;) {
    shift -= 8;
    facts.build_id[facts.build_id_bytes++] = static_cast<std::uint8_t>(value >> shift);
  }
}

struct DebugRecord {
  char magic[4];  // RSDS
  GUID guid;
  DWORD age;
};

// The GUID and the age of its debug information, in the order in which symbol servers write them; where there is none,
// its time stamp, size and checksum.
void identify(ModuleFacts& facts, const IMAGE_NT_HEADERS64& headers) {
  const IMAGE_DATA_DIRECTORY& directory = headers.OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_DEBUG];
  for (DWORD at = 0; at + sizeof(IMAGE_DEBUG_DIRECTORY) <= directory.Size; at += sizeof(IMAGE_DEBUG_DIRECTORY)) {
    IMAGE_DEBUG_DIRECTORY entry;
    DebugRecord record;
    if (read(facts.begin + directory.VirtualAddress + at, entry) && entry.Type == IMAGE_DEBUG_TYPE_CODEVIEW &&
        read(facts.begin + entry.AddressOfRawData, record) && std::memcmp(record.magic, "RSDS", 4) == 0) {
      put_big_endian(facts, record.guid.Data1);
      put_big_endian(facts, record.guid.Data2);
      put_big_endian(facts, record.guid.Data3);
      for (const std::uint8_t byte : record.guid.Data4) put_big_endian(facts, byte);
      put_big_endian(facts, record.age);
      return;
    }
  }
  put_big_endian(facts, headers.FileHeader.TimeDateStamp);
  put_big_endian(facts, headers.OptionalHeader.SizeOfImage);
  put_big_endian(facts, headers.OptionalHeader.CheckSum);
}

}  // namespace

journal::Header program_header() {
  journal::Header header;
  header.program = path_of(nullptr);
  header.command = {header.program};
  header.recorder = "blockyard " BLOCKYARD_VERSION " in the program";
  OSVERSIONINFOW version{};
  version.dwOSVersionInfoSize = sizeof version;
  using GetVersionFunction = LONG(WINAPI*)(OSVERSIONINFOW*);
  const auto get_version = reinterpret_cast<GetVersionFunction>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion")));
  if (get_version != nullptr) get_version(&version);
  header.machine = "Windows " + std::to_string(version.dwMajorVersion) + "." + std::to_string(version.dwMinorVersion) +
                   "." + std::to_string(version.dwBuildNumber) + ", " +
                   std::to_string(GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)) + " processors";
  return header;
}

bool Modules::find(std::uint64_t address, std::uint64_t stamp) {
  MEMORY_BASIC_INFORMATION info;
  if (VirtualQuery(reinterpret_cast<const void*>(address), &info, sizeof info) == 0 || info.Type != MEM_IMAGE) {
    return false;
  }
  ModuleFacts facts{};
  facts.begin = facts.bias = reinterpret_cast<std::uint64_t>(info.AllocationBase);
  IMAGE_DOS_HEADER dos;
  IMAGE_NT_HEADERS64 headers;
  if (!read(facts.begin, dos) || dos.e_magic != IMAGE_DOS_SIGNATURE ||
      !read(facts.begin + static_cast<std::uint64_t>(dos.e_lfanew), headers) ||
      headers.Signature != IMAGE_NT_SIGNATURE) {
    return false;
  }
  facts.end = facts.begin + headers.OptionalHeader.SizeOfImage;
  const std::uint64_t digest = std::uint64_t{headers.FileHeader.TimeDateStamp} << 32 |
                               (headers.OptionalHeader.SizeOfImage ^ headers.OptionalHeader.CheckSum);
  const auto [place, is_new] = known_.try_emplace(facts.begin, digest);
  if (!is_new && place->second == digest) return false;
  place->second = digest;
  identify(facts, headers);
  std::string path;
  if (info.AllocationBase != GetModuleHandleW(nullptr)) path = mapped_file(info.AllocationBase);
  path.resize(std::min(path.size(), max_text_bytes - sizeof facts));
  const std::uint64_t bytes = sizeof facts + path.size();
  record_.assign(2 + (bytes + 7) / 8, 0);
  record_[0] = pack(RecordKind::module, bytes);
  record_[1] = stamp;
  std::memcpy(record_.data() + 2, &facts, sizeof facts);
  std::memcpy(reinterpret_cast<char*>(record_.data() + 2) + sizeof facts, path.data(), path.size());
  return true;
}

}  // namespace blockyard::record
