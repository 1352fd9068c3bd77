// The hooks that learn thread names as soon as they are given; the collector also reads them from the kernel.
#include <cstdarg>

#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "blockyard/detail/visibility.h"
#include "record/linux/recorder.hpp"
#include "record/linux/symbols.hpp"

namespace blockyard::record {
namespace {

template <typename Function>
Function* real_function(const char* name) {
  return reinterpret_cast<Function*>(find_next(name).address);
}

// A thread that names itself before its first event is registered here: it may end before the collector asks the
// kernel.
int (*real_setname)(pthread_t, const char*) = nullptr;
int (*real_prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long) = nullptr;

bool is_recorded() { return __atomic_load_n(&process->hooks_key, __ATOMIC_ACQUIRE) >= first_key; }

}  // namespace

void find_thread_functions() {
  if (real_setname == nullptr) real_setname = real_function<int(pthread_t, const char*)>("pthread_setname_np");
  if (real_prctl == nullptr)
    real_prctl = real_function<int(int, unsigned long, unsigned long, unsigned long, unsigned long)>("prctl");
}

}  // namespace blockyard::record

using namespace blockyard::record;

extern "C" {

BY_API int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  find_thread_functions();
  const int error = real_setname(thread, name);
  if (error == 0 && is_recorded() && pthread_equal(thread, pthread_self()) != 0) {
    record_text(RecordKind::thread_name, name, false);
  }
  return error;
}

BY_API int prctl(int option, ...) noexcept {
  find_thread_functions();
  // The kernel takes five words for every option and ignores those that the caller left out.
  va_list rest;
  va_start(rest, option);
  const auto second = va_arg(rest, unsigned long);
  const auto third = va_arg(rest, unsigned long);
  const auto fourth = va_arg(rest, unsigned long);
  const auto fifth = va_arg(rest, unsigned long);
  va_end(rest);
  std::uint64_t left = 0;
  if ((option == PR_SET_TSC && second == PR_TSC_SIGSEGV) || (option == PR_SET_SECCOMP && second == SECCOMP_MODE_STRICT))
    left = leave_recording();
  const int result = real_prctl(option, second, third, fourth, fifth);
  if (result != 0) return_to_recording(left);
  if (option == PR_SET_NAME && result == 0 && is_recorded()) {
    char name[17] = {};
    real_prctl(PR_GET_NAME, reinterpret_cast<unsigned long>(name), 0, 0, 0);
    record_text(RecordKind::thread_name, name, false);
  }
  return result;
}

}  // extern "C"
