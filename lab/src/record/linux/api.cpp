// The C API of journal.h and frame.h, and the table through which libblockyard's marks arrive.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <unistd.h>

#include "base/observer.hpp"
#include "blockyard/frame.h"
#include "blockyard/journal.h"
#include "record/linux/frames.hpp"
#include "record/linux/process.hpp"
#include "record/linux/recorder.hpp"

namespace blockyard::record {
namespace {

enum class EngineJournal : std::uint32_t { none, open, closing };
constinit std::atomic<EngineJournal> engine_journal{EngineJournal::none};
std::uint32_t closed_before = 0;

bool is_open() { return engine_journal.load(std::memory_order_acquire) == EngineJournal::open; }

bool change_state(EngineJournal from, EngineJournal to) {
  return engine_journal.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_acquire);
}

// Whether an event of the engine's allocator is recorded. Call it under Busy.
bool engine_is_recorded() { return is_open() && engine_ready(); }

std::uint64_t pack_engine(RecordKind kind, const void* block) {
  return pack(kind, reinterpret_cast<std::uintptr_t>(block), true);
}

unsigned log2_of(std::size_t alignment) {
  return alignment <= 1 ? 0u : 64u - static_cast<unsigned>(__builtin_clzll(alignment - 1));
}

void record_engine_allocation(const void* block, std::size_t size, std::size_t alignment, const void* frame) {
  if (self.busy != 0) return;
  const Busy busy;
  const RecordKind kind = alignment != 0 ? RecordKind::allocate_aligned : RecordKind::allocate;
  if (!engine_is_recorded()) return;
  append_event<When::after>(pack_engine(kind, block), pack_size(size, log2_of(alignment)), frame);
}

void record_engine_free(const void* block, const void* frame) {
  if (self.busy != 0) return;
  const Busy busy;
  if (engine_is_recorded()) append_event<When::before>(pack_engine(RecordKind::free, block), frame);
}

void record_engine_reallocation(const void* old_block, const void* block, std::size_t size, const void* frame) {
  if (self.busy != 0) return;
  const Busy busy;
  if (!engine_is_recorded()) return;
  append<When::before>(pack_engine(RecordKind::reallocate_begin, old_block));
  append_event<When::after>(pack_engine(RecordKind::reallocate_end, block), pack_size(size, 0), frame);
}

// Makes the path absolute, because the collector has another working folder. Returns its length, or 0 when it does not
// fit.
std::size_t make_absolute(const char* path, char (&into)[max_text_bytes]) {
  std::size_t used = 0;
  if (path[0] != '/') {
    if (getcwd(into, sizeof into) == nullptr) return 0;
    used = std::strlen(into);
    into[used++] = '/';
  }
  const std::size_t bytes = std::strlen(path);
  if (bytes == 0 || used + bytes + 1 > sizeof into) return 0;
  std::memcpy(into + used, path, bytes + 1);
  return used + bytes;
}

void observe_frame_mark() { mark_frame(false); }
void observe_phase_mark(const char* name) { record_text(RecordKind::phase_mark, name, false); }

// Blocks of pools and lifetimes lie in memory that malloc never hands out, so they can appear in its journal beside its
// own.
void observe_block_allocated(const void* block, std::size_t size, std::size_t alignment) {
  if (self.busy != 0) return;
  const Busy busy;
  const RecordKind kind = alignment != 0 ? RecordKind::allocate_aligned : RecordKind::allocate;
  record_allocation(kind, const_cast<void*>(block), size, alignment, BLOCKYARD_FRAME);
}

void observe_block_freed(const void* block) {
  if (self.busy != 0) return;
  const Busy busy;
  // Never by record_free(), which asks malloc for the size of a block from before.
  if (!hooks_ready()) return;
  append_event<When::before>(pack(RecordKind::free, reinterpret_cast<std::uintptr_t>(block)), BLOCKYARD_FRAME);
  if (limits_are_watched) watch_event(RecordKind::free, 0);
}

constexpr base::Observer observer_table{base::observer_version, observe_frame_mark, observe_phase_mark,
                                        observe_block_allocated, observe_block_freed};

void append_mark(RecordKind kind, bool engine) {
  if (self.busy != 0) return;
  const Busy busy;
  if (engine_ready() || hooks_ready()) append<When::before>(pack(kind, 0, engine));
}

// A caller that ignores the result, as samples do, would never learn why there is no journal.
int refuse(int error, const char* why, const char* where) {
  for (const char* part : {"blockyard: no journal is written: ", why, where, "\n"}) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, part, std::strlen(part));
  }
  errno = error;
  return -1;
}

}  // namespace
}  // namespace blockyard::record

using namespace blockyard::record;

extern "C" {

BY_API const blockyard::base::Observer* by_recorder_observer();
const blockyard::base::Observer* by_recorder_observer() { return &observer_table; }

BY_API void by_frame_mark(void) { mark_frame(false); }

BY_API void by_phase_mark(const char* name) { observe_phase_mark(name); }

int by_journal_open(const char* path) {
  char absolute[max_text_bytes];
  if (path == nullptr || make_absolute(path, absolute) == 0)
    return refuse(ENAMETOOLONG, "its path is empty or longer than 4,096 bytes", "");
  // The first event decides whether the program runs under a recorder; only where it does not is a collector started.
  if (!engine_ready() && !hooks_ready() && !open_engine_recording())
    return refuse(ECHILD, "blockyard-collect can't be started; it must lie beside libblockyard-record.so, in ",
                  own_folder());
  if (!engine_ready() || !change_state(EngineJournal::none, EngineJournal::open))
    return refuse(EBUSY, "another one is open", "");
  closed_before = process->mapped.control->engine_closed.load();
  record_text(RecordKind::journal_open, absolute, true);
  return 0;
}

int by_journal_close(void) {
  if (!change_state(EngineJournal::open, EngineJournal::closing)) {
    errno = EBADF;
    return -1;
  }
  append_mark(RecordKind::journal_close, true);
  const int failed = wait_for_engine_close(closed_before) ? 0 : -1;
  change_state(EngineJournal::closing, EngineJournal::none);
  if (failed != 0) errno = EIO;
  return failed;
}

void by_journal_alloc(const void* block, size_t size, size_t alignment) {
  if (block != nullptr) record_engine_allocation(block, size, alignment, BLOCKYARD_FRAME);
}

void by_journal_free(const void* block) {
  if (block != nullptr) record_engine_free(block, BLOCKYARD_FRAME);
}

void by_journal_realloc(const void* old_block, const void* block, size_t size) {
  if (old_block == nullptr && block == nullptr) return;
  if (old_block == nullptr) {
    record_engine_allocation(block, size, 0, BLOCKYARD_FRAME);
  } else if (block == nullptr) {
    record_engine_free(old_block, BLOCKYARD_FRAME);
  } else {
    record_engine_reallocation(old_block, block, size, BLOCKYARD_FRAME);
  }
}

void by_journal_start(void) { append_mark(RecordKind::window_start, false); }
void by_journal_stop(void) { append_mark(RecordKind::window_stop, false); }

void by_journal_name_thread(const char* name) { record_text(RecordKind::thread_name, name, false); }

}  // extern "C"
