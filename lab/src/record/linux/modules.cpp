// A table of the objects that were reported, for all threads. Its lock is taken only for a frame that is new to a
// thread and after dlclose(). An object is reported before the lock is given back, so the report precedes every use.
#include "record/linux/modules.hpp"

#include <cstring>
#include <ctime>

#include "record/linux/recorder.hpp"
#include "record/linux/symbols.hpp"
#include "unwind/objects.hpp"

namespace blockyard::record {
namespace {

struct Reported {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint64_t bias;
  const void* identity;
  std::uint64_t path_hash;  ///< the loader may give another object the same memory
};

constexpr std::size_t most_reported = 1024;  // objects beyond that are reported for each frame
Reported reported[most_reported];
std::size_t reported_count = 0;
std::uint32_t lock = 0;
char text[max_text_bytes];

class ModulesLock {
 public:
  ModulesLock() {
    while (__atomic_exchange_n(&lock, 1u, __ATOMIC_ACQUIRE) != 0) {
      const timespec moment{0, 20'000};
      nanosleep(&moment, nullptr);
    }
  }
  ~ModulesLock() { __atomic_store_n(&lock, 0u, __ATOMIC_RELEASE); }
  ModulesLock(const ModulesLock&) = delete;
  ModulesLock& operator=(const ModulesLock&) = delete;
};

std::uint64_t hash_of(const char* path) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (; *path != '\0'; ++path) hash = (hash ^ static_cast<unsigned char>(*path)) * 0x100000001b3;
  return hash;
}

bool is_same(const Reported& known, const unwind::Object& object) {
  return known.begin == object.begin && known.end == object.end && known.bias == object.bias &&
         known.identity == object.identity && known.path_hash == hash_of(object.path);
}

void report(const unwind::Object& object) {
  ModuleFacts facts{};
  facts.begin = object.begin;
  facts.end = object.end;
  facts.bias = object.bias;
  facts.build_id_bytes = static_cast<std::uint8_t>(unwind::build_id_of(object, facts.build_id, sizeof facts.build_id));
  const std::size_t path_bytes = strnlen(object.path, sizeof text - sizeof facts);
  std::memcpy(text, &facts, sizeof facts);
  std::memcpy(text + sizeof facts, object.path, path_bytes);
  append<When::before>(pack(RecordKind::module, sizeof facts + path_bytes), 0, 0, text);
}

void remove(std::size_t index) { reported[index] = reported[--reported_count]; }

}  // namespace

void announce_module(std::uint64_t address) {
  for (const ThreadState::Range& range : self.reported) {
    if (address >= range.begin && address < range.end) return;
  }
  unwind::Object object;
  if (!unwind::find_object(address, object)) return;
  self.reported[self.reported_at++ % 8] = {object.begin, object.end};
  const ModulesLock held;
  bool replaced = false;
  for (std::size_t index = 0; index < reported_count;) {
    if (is_same(reported[index], object)) return;
    // One that was unloaded by something else than dlclose().
    if (reported[index].begin < object.end && object.begin < reported[index].end) {
      remove(index);
      replaced = true;
    } else {
      ++index;
    }
  }
  report(object);
  if (reported_count < most_reported) {
    reported[reported_count++] = {object.begin, object.end, object.bias, object.identity, hash_of(object.path)};
  }
  if (replaced) unwind::Walker::objects_changed();
}

void withdraw_modules() {
  const ModulesLock held;
  bool some_are_gone = false;
  for (std::size_t index = 0; index < reported_count;) {
    unwind::Object object;
    if (unwind::find_object(reported[index].begin, object) && is_same(reported[index], object)) {
      ++index;
      continue;
    }
    append<When::before>(pack(RecordKind::module_gone, reported[index].begin));
    remove(index);
    some_are_gone = true;
  }
  if (some_are_gone) unwind::Walker::objects_changed();
}

void forget_modules() {
  lock = 0;
  reported_count = 0;
  // Once: a forked child may find the loader's lock taken.
  static void* const find_object = find_anywhere("_dl_find_object").address;
  unwind::use_find_object(find_object);
}

}  // namespace blockyard::record
