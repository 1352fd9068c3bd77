#include "base/background_thread.hpp"

#include "base/windows/kept_errors.hpp"

namespace blockyard::base {

bool BackgroundThread::start(void (*run)(), const char* name, std::initializer_list<const void*>) {
  if (!is_over()) {
    return false;
  }
  const KeptErrors kept;
  run_ = run;
  name_ = name;
  alive_.store(1, std::memory_order_relaxed);
  constexpr std::size_t stack = std::size_t{256} << 10;
  const HANDLE thread = CreateThread(
      nullptr, stack,
      [](void* self) -> DWORD {
        static_cast<BackgroundThread*>(self)->run_();
        static_cast<BackgroundThread*>(self)->alive_.store(0, std::memory_order_release);
        return 0;
      },
      this, STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  if (thread == nullptr) {
    alive_.store(0, std::memory_order_relaxed);
  } else {
    SetThreadPriority(thread, THREAD_PRIORITY_BELOW_NORMAL);
    if (pointer_ != 0) {
      CloseHandle(reinterpret_cast<HANDLE>(pointer_));
    }
    pointer_ = reinterpret_cast<std::uintptr_t>(thread);
  }
  return thread != nullptr;
}

bool BackgroundThread::is_gone() {
  return is_over() && (pointer_ == 0 || WaitForSingleObject(reinterpret_cast<HANDLE>(pointer_), 0) == WAIT_OBJECT_0);
}

NoSignals::NoSignals() = default;
NoSignals::~NoSignals() = default;

}  // namespace blockyard::base
