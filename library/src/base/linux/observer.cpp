// Finds the recorder's function table by name at run time, since a static library cannot be bound to a preloaded object
// in any other way that works for every kind of linking.
#include "base/observer.hpp"

#include <dlfcn.h>

#include <atomic>

#include "base/once.hpp"
#include "base/process.hpp"
#include "blockyard/detail/visibility.h"

extern "C" {
extern BY_API std::atomic<const blockyard::base::Observer*> by_observer_2;
constinit std::atomic<const blockyard::base::Observer*> by_observer_2{nullptr};  // observer_place_symbol
}

namespace blockyard::base {
namespace {

static_assert(observer_version == 2, "it stands in the name of by_observer_2");
constexpr Observer nobody{};

const Observer* find_observer() {
  const auto find = reinterpret_cast<FindObserver>(dlsym(RTLD_DEFAULT, observer_symbol));
  const Observer* found = find != nullptr ? find() : nullptr;
  if (found == nullptr || found->version != observer_version) found = &nobody;
  const Observer* none = nullptr;  // it may have come meanwhile
  return by_observer_2.compare_exchange_strong(none, found, std::memory_order_acq_rel) ? found : none;
}

}  // namespace

const Observer* observer() {
  const Observer* found = by_observer_2.load(std::memory_order_acquire);
  if (__builtin_expect(found == nullptr, 0)) found = find_observer();
  return found != &nobody ? found : nullptr;
}

const Observer* block_observer() {
  static constinit Once<bool> left_out;
  return left_out.get([] { return read_number("BLOCKYARD_OBSERVED", 0, 1) == 0; }) ? nullptr : observer();
}

}  // namespace blockyard::base
