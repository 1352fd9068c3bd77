// The paths of tags lie in a hash table that all threads fill without a lock and that nothing is removed from. A forked
// child keeps it, and with it the numbers.
#include "record/linux/tags.hpp"

#include <cstring>

#include <sys/mman.h>

#include "blockyard/tag.h"
#include "record/linux/recorder.hpp"

namespace blockyard::record {
namespace {

constexpr std::uint64_t entered_level = std::uint64_t{1} << 63;
constexpr std::size_t most_name_bytes = 232;
constexpr std::uint32_t most_probes = 64;

/// A path: its parent and the name that it adds.
struct Path {
  std::uint64_t hash;         ///< 0: free
  std::uint64_t reported_in;  ///< the key of the last recording that got it
  std::uint32_t parent;       ///< 0: none
  std::uint16_t is_complete;
  std::uint8_t depth;
  std::uint8_t bytes;
  char name[most_name_bytes];
};
static_assert(sizeof(Path) == 256 && most_tag_paths % 2 == 0);

Path* paths = nullptr;  // 4 MiB, mapped at the first name: a program that locks its memory locks them, too

bool prepare_paths() {
  if (__atomic_load_n(&paths, __ATOMIC_ACQUIRE) != nullptr) return true;
  constexpr std::size_t bytes = most_tag_paths * sizeof(Path);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  Path* none = nullptr;
  if (!__atomic_compare_exchange_n(&paths, &none, static_cast<Path*>(memory), false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE))
    munmap(memory, bytes);
  return true;
}

Path& path_of(std::uint32_t number) { return paths[number - 1]; }

std::uint64_t hash_of(std::uint32_t parent, const char* name, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ parent;
  for (std::size_t at = 0; at < bytes; ++at) hash = (hash ^ static_cast<unsigned char>(name[at])) * 0x100000001b3;
  return hash | 1;
}

// The bytes of a name to keep: it is cut between two characters.
std::size_t bytes_to_keep(const char* name) {
  std::size_t bytes = strnlen(name, most_name_bytes + 1);
  if (bytes <= most_name_bytes) return bytes;
  bytes = most_name_bytes;
  while (bytes > 0 && (static_cast<unsigned char>(name[bytes]) & 0xc0) == 0x80) --bytes;
  return bytes;
}

// The number of the path that `name` makes of `parent`; the parent's own where the table has no place for it. O(1).
// A path that another thread is adding is passed over: then it gets two numbers, which mean the same.
std::uint32_t find_or_add(std::uint32_t parent, const char* name) {
  const std::size_t bytes = name == nullptr ? 0 : bytes_to_keep(name);
  const unsigned depth = parent == 0 ? 0 : path_of(parent).depth;
  if (bytes == 0 || depth == ThreadTags::most_levels || !prepare_paths()) return parent;
  const std::uint64_t hash = hash_of(parent, name, bytes);
  for (std::uint32_t probe = 0; probe < most_probes; ++probe) {
    const auto number = static_cast<std::uint32_t>(((hash >> 32) + probe) % most_tag_paths) + 1;
    Path& path = path_of(number);
    std::uint64_t found = __atomic_load_n(&path.hash, __ATOMIC_ACQUIRE);
    if (found == 0 &&
        __atomic_compare_exchange_n(&path.hash, &found, hash, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      path.parent = parent;
      path.depth = static_cast<std::uint8_t>(depth + 1);
      path.bytes = static_cast<std::uint8_t>(bytes);
      std::memcpy(path.name, name, bytes);
      __atomic_store_n(&path.is_complete, 1, __ATOMIC_RELEASE);
      return number;
    }
    if (found == hash && __atomic_load_n(&path.is_complete, __ATOMIC_ACQUIRE) != 0 && path.parent == parent &&
        path.bytes == bytes && std::memcmp(path.name, name, bytes) == 0)
      return number;
  }
  return parent;
}

bool is_path(std::uint64_t number) {
  return number != 0 && number <= most_tag_paths && __atomic_load_n(&paths, __ATOMIC_ACQUIRE) != nullptr &&
         __atomic_load_n(&path_of(static_cast<std::uint32_t>(number)).is_complete, __ATOMIC_ACQUIRE) != 0;
}

// Tells the collector what a number means, if this recording has not got it: before every event that has it.
void report(std::uint32_t number) {
  if (number == 0) return;
  Path& path = path_of(number);
  if (__atomic_load_n(&path.reported_in, __ATOMIC_ACQUIRE) == self.key) return;
  report(path.parent);
  const TagFacts facts{number, path.parent};
  char text[sizeof facts + most_name_bytes];
  std::memcpy(text, &facts, sizeof facts);
  std::memcpy(text + sizeof facts, path.name, path.bytes);
  append<When::before>(pack(RecordKind::tag_path, sizeof facts + path.bytes), 0, 0, text);
  __atomic_store_n(&path.reported_in, self.key, __ATOMIC_RELEASE);
}

bool is_recorded() { return self.key == __atomic_load_n(&process->engine_key, __ATOMIC_ACQUIRE); }

// Numbers the levels from the first that has none. Under Busy.
void number_levels() {
  ThreadTags& tags = self.tags;
  const std::uint32_t levels = tags.depth < ThreadTags::most_levels ? tags.depth : ThreadTags::most_levels;
  for (; tags.numbered < levels; ++tags.numbered) {
    const std::uint64_t level = tags.levels[tags.numbered];
    std::uint32_t number = tags.numbered == 0 ? 0 : tags.numbers[tags.numbered - 1];
    if ((level & entered_level) == 0) {
      number = find_or_add(number, reinterpret_cast<const char*>(level));
    } else {
      const std::uint64_t entered = level & ~entered_level;
      number = is_path(entered) ? static_cast<std::uint32_t>(entered) : 0;
    }
    if (is_recorded()) report(number);
    tags.numbers[tags.numbered] = number;
  }
  tags.current = tags.numbered == 0 ? 0 : tags.numbers[tags.numbered - 1];
}

// The levels from `first` on are gone or new. In a signal handler that interrupted the recorder nothing happens: events
// there are not recorded, and the handler pops what it pushed.
void change_levels(std::uint32_t first) {
  if (self.busy != 0) return;
  const Busy busy;
  if (self.tags.numbered > first) self.tags.numbered = first;
  number_levels();
}

void push(std::uint64_t level) {
  ThreadTags& tags = self.tags;
  const std::uint32_t depth = tags.depth;
  if (depth < ThreadTags::most_levels) {
    // Twice, because a signal handler may come before the level counts, and write there.
    tags.levels[depth] = level;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    tags.depth = depth + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    tags.levels[depth] = level;
  } else {
    tags.depth = depth + 1;
  }
  if (__builtin_expect(is_recorded(), 0)) change_levels(depth);
}

}  // namespace

void number_all_tags() {
  self.tags.numbered = 0;
  number_levels();
}

void write_tags(char* into, std::size_t capacity) {
  std::uint32_t levels[ThreadTags::most_levels];
  std::size_t depth = 0;
  for (std::uint32_t number = self.tags.current; number != 0 && depth < ThreadTags::most_levels;
       number = path_of(number).parent)
    levels[depth++] = number;
  std::size_t held = 0;
  while (depth > 0) {
    const Path& path = path_of(levels[--depth]);
    if (held + 1 + path.bytes >= capacity) break;
    if (held > 0) into[held++] = '/';
    std::memcpy(into + held, path.name, path.bytes);
    held += path.bytes;
  }
  into[held] = '\0';
}

}  // namespace blockyard::record

using namespace blockyard::record;

extern "C" {

void by_recorder_tag_push(const char* name) { push(reinterpret_cast<std::uintptr_t>(name)); }

void by_recorder_tag_enter(uint32_t path) { push(entered_level | path); }

void by_recorder_tag_pop(void) {
  if (self.tags.depth == 0) return;
  --self.tags.depth;
  if (__builtin_expect(is_recorded(), 0)) change_levels(self.tags.depth);
}

uint32_t by_recorder_tag_current(void) {
  if (!is_recorded()) change_levels(0);
  return self.tags.current;
}

}  // extern "C"
