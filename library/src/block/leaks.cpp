// The leak report: types and sizes of static blocks that are live, and the pools with a name.
#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/once.hpp"
#include "base/process.hpp"
#include "base/say.hpp"
#include "block/pool.hpp"
#include "block/watch.hpp"
#include "blockyard/static_block_allocator.hpp"

namespace blockyard::block {
namespace {

constinit std::atomic<TypeRecord*> types{nullptr};
constinit Pool* named = nullptr;         // pools with a name; guarded by `records_lock`
constinit std::atomic<int> at_exit{-1};  // -1: as the environment says
constinit std::atomic<int> reporter{0};  // the process that may report; a forked child is another

void say_leak(int descriptor, std::size_t count, std::size_t bytes, std::size_t stride, std::string_view names) {
  base::say_to(descriptor, "blockyard: leaked %zu %s of %zu bytes (%zu bytes): %.*s\n", count,
               count == 1 ? "block" : "blocks", stride, bytes, static_cast<int>(names.size()), names.data());
}

// Watched processes know the type of each typed block.
bool is_counted(const TypeRecord* type) { return type->counted || process_is_watched(); }

// Calls visit(name, live) for each type of a stride, counted or not. The records of one type that several shared
// objects have are taken together.
template <class Visit>
void for_each_type(std::size_t stride, bool counted, Visit&& visit) {
  const TypeRecord* const newest = types.load(std::memory_order_acquire);
  for (const TypeRecord* type = newest; type != nullptr; type = type->next) {
    if (type->stride != stride || is_counted(type) != counted) {
      continue;
    }
    const TypeRecord* first = nullptr;
    std::ptrdiff_t live = 0;
    for (const TypeRecord* other = newest; other != nullptr; other = other->next) {
      if (other->stride == stride && is_counted(other) == counted && other->name == type->name) {
        first = first != nullptr ? first : other;
        live += other->live.load(std::memory_order_relaxed);
      }
    }
    if (first == type) {
      visit(type->name, live);
    }
  }
}

// The names of all types of a stride that are not counted.
class Names {
 public:
  explicit Names(std::size_t stride) {
    for_each_type(stride, false, [this](std::string_view name, std::ptrdiff_t) {
      add(length_ == 0 ? "" : " or ");
      add(name);
    });
    if (length_ == 0) {
      add("untyped");
    }
  }
  std::string_view text() const { return {text_, length_}; }

 private:
  void add(std::string_view part) { length_ += part.copy(text_ + length_, sizeof text_ - length_); }

  char text_[320];
  std::size_t length_ = 0;
};

// Writes a line per counted type. Returns how many blocks they are.
std::size_t report_counted(int descriptor, std::size_t stride) {
  std::size_t explained = 0;
  for_each_type(stride, true, [&](std::string_view name, std::ptrdiff_t live) {
    if (live > 0) {
      const auto count = static_cast<std::size_t>(live);
      say_leak(descriptor, count, count * stride, stride, name);
      explained += count;
    }
  });
  return explained;
}

__attribute__((constructor)) void remember_process() { reporter.store(base::process_id(), std::memory_order_relaxed); }

// Destructor functions run after atexit handlers and static destructors.
__attribute__((destructor)) void report_at_exit() {
  const int set = at_exit.load(std::memory_order_relaxed);
  if ((set >= 0 ? set : leaks_wanted()) != 0 && reporter.load(std::memory_order_relaxed) == base::process_id()) {
    by_block_leak_report(base::standard_error);
  }
}

}  // namespace

int leaks_wanted() {
  static constinit base::Once<int> wanted;
  return wanted.get([] { return static_cast<int>(base::read_number("BLOCKYARD_LEAKS", 0, 2).value_or(0)); });
}

void pool_set_name(Pool* pool, const char* name) {
  const std::lock_guard lock(records_lock);
  Pool** link = &named;
  while (*link != nullptr && *link != pool) {
    link = &(*link)->next_named;
  }
  if (name == nullptr && *link != nullptr) {
    *link = (*link)->next_named;
  } else if (name != nullptr && *link == nullptr) {
    *link = pool;
    pool->next_named = nullptr;
  }
  pool->name = name;
}

void report_named_pools(int descriptor) {
  const std::lock_guard lock(records_lock);
  for (const Pool* pool = named; pool != nullptr; pool = pool->next_named) {
    // By the table, not by the pool's lists, which its owner may change meanwhile.
    std::size_t live = 0;
    window_each_slab([&](Index index) {
      live += slab(index).pool.load(std::memory_order_acquire) == pool ? slab_live(slab(index)) : 0;
    });
    live -= std::min(live, waiting_blocks(pool));
    if (live != 0) {
      base::say_to(descriptor, "blockyard: pool %s holds %zu %s of %zu bytes (%zu bytes)\n", pool->name, live,
                   live == 1 ? "block" : "blocks", std::size_t{pool->stride}, live * pool->stride);
    }
  }
}

extern "C" void by_block_record_type(TypeRecord* record) noexcept {
  TypeRecord* head = types.load(std::memory_order_relaxed);
  do {
    record->next = head;
  } while (!types.compare_exchange_weak(head, record, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace blockyard::block

extern "C" {

size_t by_block_leak_report(int descriptor) {
  using namespace blockyard::block;
  std::size_t total = 0;
  for (std::uint32_t slot = 1; slot < slot_count; ++slot) {
    const std::size_t stride = static_stride(slot);
    if (stride == 0 || !static_slot_in_use(slot)) {
      continue;
    }
    const std::size_t live = static_slot_statistics(slot, stride).live_blocks;
    total += live;
    if (live == 0) {
      continue;
    }
    const std::size_t explained = report_counted(descriptor, stride);
    if (live > explained) {
      const Names names(stride);
      say_leak(descriptor, live - explained, (live - explained) * stride, stride, names.text());
    }
  }
  report_named_pools(descriptor);
  return total;
}

void by_block_leak_report_at_exit(int enabled) {
  blockyard::block::at_exit.store(enabled != 0, std::memory_order_relaxed);
}
}
