// The recorder is a library inside the program, its own or a DLL's. Nothing finds a function in all modules: the
// recorder leaves its table's address in the environment, behind the process's number, for children inherit that.
#include "base/observer.hpp"

#include <atomic>
#include <cstdlib>

#include "base/windows/kept_errors.hpp"

namespace blockyard::base {
namespace {

constexpr Observer nobody{};
std::atomic<const Observer*> known{nullptr};

const Observer* find_observer() {
  char text[64] = {};
  const Observer* found = nullptr;
  const KeptErrors kept;  // without a recorder there is no such variable, which is an error
  if (const DWORD length = GetEnvironmentVariableA(observer_symbol, text, sizeof text);
      length != 0 && length < sizeof text) {
    char* end = nullptr;
    const bool is_ours = std::strtoul(text, &end, 10) == GetCurrentProcessId();
    if (is_ours) found = reinterpret_cast<const Observer*>(std::strtoull(end, nullptr, 16));
  }
  if (found == nullptr || found->version != observer_version) found = &nobody;
  known.store(found, std::memory_order_release);
  return found;
}

}  // namespace

const Observer* observer() {
  const Observer* found = known.load(std::memory_order_acquire);
  if (__builtin_expect(found == nullptr, 0)) found = find_observer();
  return found != &nobody ? found : nullptr;
}

const Observer* block_observer() { return nullptr; }

}  // namespace blockyard::base
