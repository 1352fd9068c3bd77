#include "record/linux/asleep.hpp"

#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/kept_errno.hpp"
#include "record/channel.hpp"
#include "record/linux/process.hpp"
#include "record/linux/recorder.hpp"

namespace blockyard::record {
namespace {

AsleepPage* page = nullptr;
char path[512] = {};
std::uint32_t waking = 0;

// The program's own end takes the file along. After a crash it is stale: whoever wakes looks whether the process is
// there.
__attribute__((destructor)) void remove_page() {
  if (page != nullptr && page->pid == getpid()) unlink(path);
}

}  // namespace

const std::uint32_t* wanted_turn = &attached_turn;
std::uint32_t attached_turn = ~0u;

void fall_asleep(const char* folder) {
  const int length = std::snprintf(path, sizeof path, "%s/%s%d", folder, asleep_name, static_cast<int>(getpid()));
  if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path) return;
  unlink(path);  // of a process that had this number before, and crashed
  const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  void* memory = MAP_FAILED;
  if (ftruncate(file, page_bytes) == 0) memory = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    unlink(path);
    return;
  }
  page = static_cast<AsleepPage*>(memory);
  page->pid = getpid();
  __atomic_store_n(&page->version, protocol_version, __ATOMIC_RELEASE);
  wanted_turn = &page->turn;
}

bool wake_up() {
  if (self.busy != 0) return false;
  // Calls of other threads pass through meanwhile.
  if (__atomic_exchange_n(&waking, 1u, __ATOMIC_ACQUIRE) != 0) return false;
  const base::KeptErrno kept;
  const std::uint32_t turn = __atomic_load_n(wanted_turn, __ATOMIC_ACQUIRE);
  if (turn != 0 && turn != attached_turn) {
    detach_from_running();
    const char* const failure = attach_to_awoken(page->socket);
    if (page->pid == getpid()) {
      std::memset(page->failure, 0, sizeof page->failure);
      if (failure != nullptr) std::strncpy(page->failure, failure, sizeof page->failure - 1);
      __atomic_store_n(&page->answered, turn, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&attached_turn, turn, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&waking, 0u, __ATOMIC_RELEASE);
  return turn != 0;
}

}  // namespace blockyard::record
