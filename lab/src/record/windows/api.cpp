// The C API of journal.h in a Windows program.
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/observer.hpp"
#include "base/windows/kept_errors.hpp"
#include "blockyard/journal.h"
#include "record/windows/recorder.hpp"

namespace blockyard::record {

using base::KeptErrors;

namespace {

enum class EngineJournal : std::uint32_t { none, open, closing };
constinit std::atomic<EngineJournal> engine_journal{EngineJournal::none};
std::uint32_t closed_before = 0;

bool change_state(EngineJournal from, EngineJournal to) { return engine_journal.compare_exchange_strong(from, to); }

bool is_recorded() { return engine_journal.load(std::memory_order_acquire) == EngineJournal::open && !is_writer(); }

// Of the function of the API that this is part of, without its own frame.
[[gnu::always_inline]] inline void walk(Stack& stack) {
  stack.count = RtlCaptureStackBackTrace(1, Stack::most, stack.addresses, nullptr);
}

std::uint64_t packed(RecordKind kind, const void* block) {
  return pack(kind, reinterpret_cast<std::uintptr_t>(block), true);
}

void record_allocation(const void* block, std::size_t size, std::size_t alignment, const Stack& stack) {
  const unsigned log2 = alignment <= 1 ? 0u : static_cast<unsigned>(std::bit_width(alignment - 1));
  const RecordKind kind = alignment != 0 ? RecordKind::allocate_aligned : RecordKind::allocate;
  const std::uint64_t record[] = {packed(kind, block), 0, pack_size(size, log2)};
  append(record, &stack);
}

void record_free(const void* block, const Stack& stack) {
  const std::uint64_t record[] = {packed(RecordKind::free, block), 0};
  append(record, &stack);
}

void record_reallocation(const void* old_block, const void* block, std::size_t size, const Stack& stack) {
  const std::uint64_t begin[] = {packed(RecordKind::reallocate_begin, old_block), 0};
  const std::uint64_t end[] = {packed(RecordKind::reallocate_end, block), 0, pack_size(size, 0)};
  append(begin, &stack, end);
}

void append_mark(RecordKind kind, bool engine) {
  if (!is_started() || is_writer()) return;
  const KeptErrors kept;
  const std::uint64_t record[] = {pack(kind, 0, engine), 0};
  append(record);
}

int refuse(int error, const char* why) {
  std::fprintf(stderr, "blockyard: no journal is written: %s\n", why);
  errno = error;
  return -1;
}

int close_journal() {
  if (!change_state(EngineJournal::open, EngineJournal::closing)) {
    errno = EBADF;
    return -1;
  }
  append_mark(RecordKind::journal_close, true);
  const bool whole = wait_for_close(closed_before) && last_is_whole();
  change_state(EngineJournal::closing, EngineJournal::none);
  if (!whole) errno = EIO;
  return whole ? 0 : -1;
}

LPTOP_LEVEL_EXCEPTION_FILTER filter_before = nullptr;

LONG WINAPI on_crash(EXCEPTION_POINTERS* facts) {
  write_now();
  return filter_before != nullptr ? filter_before(facts) : EXCEPTION_CONTINUE_SEARCH;
}

void at_exit() { close_journal(); }

// Of the library's blocks nothing is recorded: they may lie inside the engine's.
void ignore_allocation(const void*, std::size_t, std::size_t) {}
void ignore_free(const void*) {}
constexpr base::Observer observer_table{base::observer_version, mark_frame, mark_phase, ignore_allocation, ignore_free};

// Whatever the program and its modules link, the library finds the table by this (base/windows/observer.cpp).
[[gnu::constructor]] void announce() {
  char value[64];
  std::snprintf(value, sizeof value, "%lu %p", GetCurrentProcessId(), static_cast<const void*>(&observer_table));
  SetEnvironmentVariableA(base::observer_symbol, value);
}

void begin_once() {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) return;
  filter_before = SetUnhandledExceptionFilter(on_crash);
  std::atexit(at_exit);
}

}  // namespace
}  // namespace blockyard::record

using namespace blockyard::record;

extern "C" {

BY_API int by_journal_open(const char* path) {
  constexpr std::size_t most = 4096;
  const std::string given = path == nullptr ? "" : path;
  if (given.empty() || given.size() > most) return refuse(ENAMETOOLONG, "its path is empty or longer than 4,096 bytes");
  // What the program does later to its working folder does not move the journal.
  wchar_t wide[most + 1];
  wchar_t full[most + 1];
  char absolute[3 * most + 1];
  if (MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, most + 1) == 0) return refuse(EILSEQ, "its path is no UTF-8");
  const DWORD length = GetFullPathNameW(wide, most + 1, full, nullptr);
  if (length == 0 || length > most ||
      WideCharToMultiByte(CP_UTF8, 0, full, -1, absolute, sizeof absolute, nullptr, nullptr) == 0 ||
      std::string(absolute).size() > max_text_bytes)
    return refuse(ENAMETOOLONG, "its path is longer than 4,096 bytes");
  if (!start_writer()) return refuse(ECHILD, "the thread that writes it can't be started");
  if (!change_state(EngineJournal::none, EngineJournal::open)) return refuse(EBUSY, "another one is open");
  begin_once();
  closed_before = closed_journals();
  append_text(RecordKind::journal_open, absolute, true);
  return 0;
}

BY_API int by_journal_close(void) { return close_journal(); }

BY_API void by_journal_alloc(const void* block, size_t size, size_t alignment) {
  if (block == nullptr || !is_recorded()) return;
  const KeptErrors kept;
  Stack stack;
  walk(stack);
  record_allocation(block, size, alignment, stack);
}

BY_API void by_journal_free(const void* block) {
  if (block == nullptr || !is_recorded()) return;
  const KeptErrors kept;
  Stack stack;
  walk(stack);
  record_free(block, stack);
}

BY_API void by_journal_realloc(const void* old_block, const void* block, size_t size) {
  if ((old_block == nullptr && block == nullptr) || !is_recorded()) return;
  const KeptErrors kept;
  Stack stack;
  walk(stack);
  if (old_block == nullptr) {
    record_allocation(block, size, 0, stack);
  } else if (block == nullptr) {
    record_free(old_block, stack);
  } else {
    record_reallocation(old_block, block, size, stack);
  }
}

BY_API void by_journal_start(void) { append_mark(RecordKind::window_start, false); }
BY_API void by_journal_stop(void) { append_mark(RecordKind::window_stop, false); }

BY_API void by_journal_name_thread(const char* name) {
  if (!is_started() || is_writer()) return;
  const KeptErrors kept;
  append_text(RecordKind::thread_name, name, false);
}

}  // extern "C"
