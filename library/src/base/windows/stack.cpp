// Stacks come from the system; an address is named by its module, for a debugger or addr2line.
#include "base/stack.hpp"

#include "base/windows/windows.hpp"

#include <algorithm>
#include <cstdio>

namespace blockyard::base {

std::size_t capture_stack(void** addresses, std::size_t room) {
  constexpr std::size_t most = 62;  // of the system's older versions
  const std::size_t count = RtlCaptureStackBackTrace(0, static_cast<DWORD>(std::min(room, most)), addresses, nullptr);
  // Some systems end a thread's first stack with a 0.
  return static_cast<std::size_t>(std::find(addresses, addresses + count, nullptr) - addresses);
}

// No section says where the library's code lies: stacks in reports begin with it.
bool is_own_code(const void*) { return false; }

void describe_address(const void* address, char* text, std::size_t room) {
  HMODULE module = nullptr;
  char file[400];
  constexpr DWORD how = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (GetModuleHandleExA(how, static_cast<const char*>(address), &module) == 0 ||
      GetModuleFileNameA(module, file, sizeof file) == 0) {
    std::snprintf(text, room, "%p", address);
    return;
  }
  const auto offset = static_cast<const char*>(address) - reinterpret_cast<const char*>(module);
  std::snprintf(text, room, "%s+0x%llx", file, static_cast<unsigned long long>(offset));
}

}  // namespace blockyard::base
