#include "replay/run/adapter_host.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "journal/event.hpp"

namespace blockyard::replay {
namespace {

// dlopen searches the library path for a name without a slash; users mean the file.
std::string as_file(const std::string& path) {
  std::error_code reason;
  if (!std::filesystem::exists(path, reason)) throw journal::Error(path + " does not exist");
  return std::filesystem::absolute(path).string();
}

void* load(const std::string& path, int flags) {
  void* handle = dlopen(path.c_str(), flags);
  if (handle == nullptr) throw journal::Error("the allocator can't be loaded: " + std::string(dlerror()));
  return handle;
}

const char* missing_function(const by_adapter& adapter) {
  if (adapter.allocate == nullptr) return "allocate";
  if (adapter.allocate_zeroed == nullptr) return "allocate_zeroed";
  if (adapter.allocate_aligned == nullptr) return "allocate_aligned";
  if (adapter.reallocate == nullptr) return "reallocate";
  if ((adapter.flags & BY_ADAPTER_SIZED_FREE) != 0) return adapter.free_sized == nullptr ? "free_sized" : nullptr;
  return adapter.free == nullptr ? "free" : nullptr;
}

[[noreturn]] void incomplete(const std::string& path, const char* lacking) {
  throw journal::Error(path + " is an incomplete adapter: it lacks '" + lacking + "'");
}

}  // namespace

std::string LoadedAdapter::start(by_adapter_setup setup) const {
  char error[512] = {};
  setup.abi = BY_ADAPTER_ABI;
  setup.error = error;
  setup.error_bytes = sizeof error;
  if (adapter->init(&setup) == 0) return "";
  return error[0] != '\0' ? error : "the adapter gave no reason";
}

void LoadedAdapter::check_functions() const {
  if (const char* name = missing_function(*adapter)) incomplete(path, name);
}

std::vector<std::string> LoadedAdapter::notes() const {
  constexpr struct {
    std::uint32_t flag;
    const char* note;
  } emulations[] = {
      {BY_ADAPTER_EMULATES_ZEROED, "it exports no calloc: malloc and memset stand in for it"},
      {BY_ADAPTER_EMULATES_REALLOCATE, "it exports no realloc that would do: malloc, memcpy and free stand in for it"},
      {BY_ADAPTER_EMULATES_ALIGNED, "it exports no aligned allocation: a larger malloc stands in for it"},
  };
  std::vector<std::string> said;
  for (const auto& emulation : emulations) {
    if ((adapter->flags & emulation.flag) != 0) said.emplace_back(emulation.note);
  }
  return said;
}

Counters LoadedAdapter::counters() const {
  constexpr std::uint32_t most = 16;
  Counters read;
  if (read_counters == nullptr) return read;
  by_adapter_counter counters[most] = {};
  const std::uint32_t filled = std::min(read_counters(counters, most), most);
  for (std::uint32_t index = 0; index < filled; ++index) read.emplace_back(counters[index].name, counters[index].value);
  return read;
}

LoadedAdapter load_adapter(const std::string& path) {
  const std::string file = as_file(path);
  void* handle = load(file, RTLD_NOW | RTLD_LOCAL);
  const auto get = reinterpret_cast<const by_adapter* (*)()>(dlsym(handle, "by_adapter_get"));
  if (get == nullptr) {
    throw journal::Error(path +
                         " is no adapter: it does not export by_adapter_get; give a library that exports malloc and "
                         "free with --foreign");
  }
  const by_adapter* adapter = get();
  if (adapter == nullptr) throw journal::Error(path + " gave no adapter");
  if (adapter->abi != BY_ADAPTER_ABI) {
    throw journal::Error(path + " was built for adapter ABI " + std::to_string(adapter->abi) + " and this is " +
                         std::to_string(BY_ADAPTER_ABI) + "; build it again");
  }
  for (const auto& [present, name] :
       {std::pair{adapter->name != nullptr, "name"}, std::pair{adapter->version != nullptr, "version"},
        std::pair{adapter->init != nullptr, "init"}}) {
    if (!present) incomplete(path, name);
  }
  const auto counters =
      reinterpret_cast<std::uint32_t (*)(by_adapter_counter*, std::uint32_t)>(dlsym(handle, "by_adapter_counters"));
  const auto usable_size = reinterpret_cast<std::size_t (*)(void*)>(dlsym(handle, "by_adapter_usable_size"));
  return {adapter, file, counters, usable_size};
}

}  // namespace blockyard::replay
