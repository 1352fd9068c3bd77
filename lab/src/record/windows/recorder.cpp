#include "record/windows/recorder.hpp"

#include <windows.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/windows/kept_errors.hpp"
#include "record/collect/interpreter.hpp"
#include "record/windows/modules.hpp"
#include "record/windows/stacks.hpp"

namespace blockyard::record {

using base::KeptErrors;

namespace {

// An item: its thread's number, words of the record and addresses of the stack; then these. A thread's first item has
// no record, and as its one address the system's number of the thread.
constexpr std::uint64_t ring_words = std::uint64_t{1} << 22;  // 32 MiB: some 150,000 events with their stacks
constexpr std::uint64_t item_head(std::uint64_t thread, std::uint64_t record_words, std::uint64_t stack_words) {
  return thread | record_words << 32 | stack_words << 48;
}

std::uint64_t* ring = nullptr;
SRWLOCK ring_lock = SRWLOCK_INIT;
constinit std::atomic<std::uint64_t> head{0};  // words ever written; by those who hold the lock
constinit std::atomic<std::uint64_t> tail{0};  // words ever taken; by the writer

DWORD thread_slot = TLS_OUT_OF_INDEXES;  // of each thread its number + 1; writer_mark of the writer
constexpr std::uintptr_t writer_mark = ~std::uintptr_t{0};
constinit std::atomic<std::uint32_t> threads{0};

constinit std::atomic<bool> started{false};
HANDLE writer = nullptr;
HANDLE wanted = nullptr;                    // an event: the writer is to look at once
HANDLE closed = nullptr;                    // an event: a journal is complete, or all is written
constinit std::atomic<bool> taking{false};  // somebody is in the midst of records
constinit std::atomic<std::uint32_t> journals{0};
constinit std::atomic<bool> whole{true};
constinit std::atomic<std::uint64_t> flushes_wanted{0};
constinit std::atomic<std::uint64_t> flushes{0};

std::uint64_t stamp() {
  LARGE_INTEGER now;
  QueryPerformanceCounter(&now);
  return static_cast<std::uint64_t>(now.QuadPart);
}

bool writer_has_ended() { return WaitForSingleObject(writer, 0) == WAIT_OBJECT_0; }

// As the process ends, the system ends every thread but one, which runs what atexit of a DLL has left: then nobody else
// moves the head, which only ever stands behind whole items, and the lock's owner may be gone.
bool is_last_thread = false;

void lock_ring() {
  if (TryAcquireSRWLockExclusive(&ring_lock) != 0) return;
  is_last_thread = is_last_thread || writer_has_ended();
  if (!is_last_thread) AcquireSRWLockExclusive(&ring_lock);
}

void unlock_ring() {
  if (!is_last_thread) ReleaseSRWLockExclusive(&ring_lock);
}

void put(std::uint64_t& at, std::uint64_t word) { ring[at++ & (ring_words - 1)] = word; }

// The caller holds the lock.
void put_item(std::uint64_t thread, const std::uint64_t* record, std::uint64_t words, const Stack* stack) {
  const std::uint32_t count = stack == nullptr ? 0 : stack->count;
  std::uint64_t at = head.load(std::memory_order_relaxed);
  put(at, item_head(thread, words, count));
  for (std::uint64_t i = 0; i < words; ++i) put(at, i == 1 ? stamp() : record[i]);
  for (std::uint32_t i = 0; i < count; ++i) put(at, reinterpret_cast<std::uintptr_t>(stack->addresses[i]));
  head.store(at, std::memory_order_release);
}

// Takes the lock when there is room for so many words; false, without it, where nobody will make room.
bool lock_with_room(std::uint64_t words) {
  for (;;) {
    lock_ring();
    if (head.load(std::memory_order_relaxed) + words - tail.load(std::memory_order_acquire) <= ring_words) return true;
    unlock_ring();
    SetEvent(wanted);
    if (WaitForSingleObject(writer, 1) == WAIT_OBJECT_0) return false;
  }
}

// The calling thread's number; at its first record, that is announced.
std::uint64_t number_of_thread() {
  const auto known = reinterpret_cast<std::uintptr_t>(TlsGetValue(thread_slot));
  if (known != 0) return known - 1;
  const std::uint32_t number = threads.fetch_add(1);
  TlsSetValue(thread_slot, reinterpret_cast<void*>(std::uintptr_t{number} + 1));
  Stack announced;
  announced.count = 1;
  announced.addresses[0] = reinterpret_cast<void*>(std::uintptr_t{GetCurrentThreadId()});
  if (lock_with_room(2)) {
    put_item(number, nullptr, 0, &announced);
    unlock_ring();
  }
  return number;
}

class Writer {
 public:
  Writer() : interpreter_(settings(), WindowPlan{}, threads_) {
    interpreter_.on_engine_closed = [](bool complete) {
      whole.store(complete);
      journals.fetch_add(1);
      SetEvent(closed);
    };
  }

  /// Takes what is there.
  void take() {
    taking.store(true);
    std::uint64_t at = tail.load(std::memory_order_relaxed);
    while (at != head.load(std::memory_order_acquire)) {
      const auto word = [&] { return ring[at++ & (ring_words - 1)]; };
      const std::uint64_t first = word();
      const auto thread = static_cast<std::uint32_t>(first);
      record_.resize(first >> 32 & 0xffff);
      addresses_.resize(first >> 48);
      for (std::uint64_t& each : record_) each = word();
      for (std::uint64_t& each : addresses_) each = word();
      tail.store(at, std::memory_order_release);
      apply(thread);
    }
    taking.store(false);
  }

  void flush() { interpreter_.flush(); }

 private:
  static OutputSettings settings() {
    OutputSettings output;
    LARGE_INTEGER rate;
    QueryPerformanceFrequency(&rate);
    output.ns_per_stamp = 1e9 / static_cast<double>(rate.QuadPart);
    output.header = program_header();
    output.header.ticks_per_ns = 1 / output.ns_per_stamp;
    return output;
  }

  void apply(std::uint32_t thread) {
    if (thread >= threads_.size()) threads_.resize(thread + 1);
    if (record_.empty()) {
      threads_[thread].tid = addresses_.front();
      return;
    }
    const std::uint64_t at = record_[1];
    if (!addresses_.empty()) {
      const std::uint32_t node = stacks_.number(thread, addresses_, [&](const std::uint64_t* record) {
        if (kind_of(record[0]) == RecordKind::stack_node) {
          modules_.report(record, at, [&](const std::uint64_t* module) { interpreter_.apply(thread, at, module); });
        }
        interpreter_.apply(thread, at, record);
      });
      record_[0] |= site_flag;
      record_.push_back(pack_pair(node, 0));
    }
    interpreter_.apply(thread, at, record_.data());
  }

  std::vector<ThreadFacts> threads_;
  Interpreter interpreter_;
  ThreadStacks stacks_;
  Modules modules_;
  std::vector<std::uint64_t> record_;
  std::vector<std::uint64_t> addresses_;
};

Writer* the_writer = nullptr;  // as long as the process

DWORD WINAPI write_records(void*) {
  constexpr DWORD look_ms = 20;
  // A process that is ended from outside may lose what came since: with the look and the writing, less than a second.
  constexpr ULONGLONG flush_ms = 500;
  TlsSetValue(thread_slot, reinterpret_cast<void*>(writer_mark));
  ULONGLONG flushed_at = GetTickCount64();
  for (;;) {
    WaitForSingleObject(wanted, look_ms);
    const std::uint64_t flush_wanted = flushes_wanted.load();
    the_writer->take();
    if (flush_wanted != flushes.load() || GetTickCount64() - flushed_at >= flush_ms) {
      taking.store(true);
      the_writer->flush();
      taking.store(false);
      flushed_at = GetTickCount64();
      flushes.store(flush_wanted);
      SetEvent(closed);
    }
  }
}

// What an earlier try was given is used again.
bool start() {
  if (ring == nullptr)
    ring = static_cast<std::uint64_t*>(
        VirtualAlloc(nullptr, ring_words * sizeof(std::uint64_t), MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  if (thread_slot == TLS_OUT_OF_INDEXES) thread_slot = TlsAlloc();
  if (wanted == nullptr) wanted = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  if (closed == nullptr) closed = CreateEventW(nullptr, FALSE, FALSE, nullptr);
  if (ring == nullptr || thread_slot == TLS_OUT_OF_INDEXES || wanted == nullptr || closed == nullptr) return false;
  // The thread runs on in this module's code.
  HMODULE module = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                     reinterpret_cast<const wchar_t*>(&write_records), &module);
  if (the_writer == nullptr) the_writer = new Writer;
  writer = CreateThread(nullptr, 0, write_records, nullptr, 0, nullptr);
  return writer != nullptr;
}

}  // namespace

bool start_writer() {
  static SRWLOCK lock = SRWLOCK_INIT;
  AcquireSRWLockExclusive(&lock);
  if (!started.load() && start()) started.store(true, std::memory_order_release);
  ReleaseSRWLockExclusive(&lock);
  return started.load();
}

bool is_started() { return started.load(std::memory_order_acquire); }

bool is_writer() {
  const KeptErrors kept;  // TlsGetValue() sets the last error where it succeeds too
  return reinterpret_cast<std::uintptr_t>(TlsGetValue(thread_slot)) == writer_mark;
}

void append(const std::uint64_t* record, const Stack* stack, const std::uint64_t* second) {
  const std::uint64_t thread = number_of_thread();
  const std::uint64_t words = words_of(record[0]);
  const std::uint64_t more = second == nullptr ? 0 : words_of(second[0]) + 1 + Stack::most;
  if (!lock_with_room(words + 1 + Stack::most + more)) return;
  if (second == nullptr) {
    put_item(thread, record, words, stack);
  } else {
    put_item(thread, record, words, nullptr);
    put_item(thread, second, words_of(second[0]), stack);
  }
  const bool is_half_full =
      head.load(std::memory_order_relaxed) - tail.load(std::memory_order_relaxed) > ring_words / 2;
  unlock_ring();
  if (is_half_full) SetEvent(wanted);
}

void append_text(RecordKind kind, const char* text, bool engine) {
  std::uint64_t record[max_record_words] = {};
  const std::size_t bytes = text == nullptr ? 0 : std::min(std::strlen(text), max_text_bytes);
  record[0] = pack(kind, bytes, engine);
  if (bytes != 0) std::memcpy(record + 2, text, bytes);
  append(record);
}

void mark_frame() {
  if (!is_started() || is_writer()) return;
  const KeptErrors kept;
  const std::uint64_t record[] = {pack(RecordKind::frame_mark, 0), 0};
  append(record);
}

void mark_phase(const char* name) {
  if (!is_started() || is_writer()) return;
  const KeptErrors kept;
  append_text(RecordKind::phase_mark, name, false);
}

std::uint32_t closed_journals() { return journals.load(); }
bool last_is_whole() { return whole.load(); }

bool wait_for_close(std::uint32_t before) {
  SetEvent(wanted);
  while (journals.load() == before) {
    if (writer_has_ended()) {
      write_now();
      return journals.load() != before;
    }
    WaitForSingleObject(closed, 10);
    SetEvent(wanted);
  }
  return true;
}

void write_now() {
  if (!is_started()) return;
  if (writer_has_ended()) {
    // As the process ends, the system has ended it.
    if (taking.load()) return;
    the_writer->take();
    the_writer->flush();
    return;
  }
  if (is_writer()) return;
  constexpr ULONGLONG most_ms = 10'000;
  const ULONGLONG begin = GetTickCount64();
  const std::uint64_t mine = flushes_wanted.fetch_add(1) + 1;
  SetEvent(wanted);
  while (flushes.load() < mine && !writer_has_ended() && GetTickCount64() - begin < most_ms) Sleep(1);
}

}  // namespace blockyard::record
