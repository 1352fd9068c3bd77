#include "base/process.hpp"

#include "base/windows/windows.hpp"

#include <io.h>
#include <ntsecapi.h>

#include <algorithm>
#include <cstdlib>

#include "base/say.hpp"
#include "base/windows/kept_errors.hpp"

namespace blockyard::base {

namespace {

bool (*is_reported)(const void* address) = nullptr;
void (*report_access)(const void* address) = nullptr;

LONG CALLBACK on_exception(EXCEPTION_POINTERS* facts) {
  const EXCEPTION_RECORD& record = *facts->ExceptionRecord;
  if (record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION && record.NumberParameters >= 2) {
    const void* const address = reinterpret_cast<const void*>(record.ExceptionInformation[1]);
    if (is_reported(address)) {
      report_access(address);
    }
  }
  return EXCEPTION_CONTINUE_SEARCH;
}

}  // namespace

int process_id() { return static_cast<int>(GetCurrentProcessId()); }

bool shares_memory_with(int id) { return id == process_id(); }
int thread_id() { return static_cast<int>(GetCurrentThreadId()); }
bool thread_has_ended(int id) {
  const KeptErrors kept;
  const HANDLE thread = OpenThread(SYNCHRONIZE, FALSE, static_cast<DWORD>(id));
  const bool ended =
      thread == nullptr ? GetLastError() == ERROR_INVALID_PARAMETER : WaitForSingleObject(thread, 0) == WAIT_OBJECT_0;
  if (thread != nullptr) {
    CloseHandle(thread);
  }
  return ended;
}

unsigned threads_of_process() { return 0; }

void write_bytes(int descriptor, const char* text, std::size_t bytes) {
  for (int written = 1; bytes != 0 && written > 0; text += written, bytes -= static_cast<std::size_t>(written)) {
    written = std::max(_write(descriptor, text, static_cast<unsigned>(bytes)), 0);
  }
}

const char* environment(const char* name) { return std::getenv(name); }

std::array<std::uint64_t, 2> random_words() {
  static const std::array<std::uint64_t, 2> words = [] {
    std::array<std::uint64_t, 2> drawn{};
    RtlGenRandom(drawn.data(), sizeof drawn);
    return drawn;
  }();
  return words;
}

void report_forbidden_accesses(bool (*is_ours)(const void* address), void (*report)(const void* address)) {
  is_reported = is_ours;
  report_access = report;
  AddVectoredExceptionHandler(1, on_exception);
}

}  // namespace blockyard::base
