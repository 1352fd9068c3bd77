#include "heap/checked/quarantine.hpp"

#include <array>
#include <mutex>

#include "base/threads.hpp"

namespace blockyard::heap::checked {
namespace {

constinit base::Mutex lock;
constinit std::array<Waiting, most_waiting + 1> ring{};
constinit std::size_t oldest = 0;
constinit std::size_t count = 0;
constinit std::size_t bytes = 0;

Waiting take_oldest() {
  const Waiting taken = ring[oldest];
  oldest = (oldest + 1) % ring.size();
  --count;
  bytes -= taken.size;
  return taken;
}

}  // namespace

Waiting enter_quarantine(const Waiting& block) {
  const std::lock_guard hold(lock);
  if (block.plain != nullptr) {
    ring[(oldest + count) % ring.size()] = block;
    ++count;
    bytes += block.size;
  }
  return count > most_waiting || bytes > most_waiting_bytes ? take_oldest() : Waiting{};
}

Waiting leave_quarantine() {
  const std::lock_guard hold(lock);
  return count > 0 ? take_oldest() : Waiting{};
}

void lock_quarantine() { lock.lock(); }
void unlock_quarantine() { lock.unlock(); }

}  // namespace blockyard::heap::checked
