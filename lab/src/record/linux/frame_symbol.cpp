// The function that the stub library of --frame-symbol calls.
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "blockyard/detail/visibility.h"
#include "record/linux/frames.hpp"
#include "record/linux/symbols.hpp"

namespace {

void* target = nullptr;

[[noreturn]] void give_up() {
  static constexpr char sentence[] =
      "blockyard: the function that --frame-symbol names is called but no library defines it\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
  abort();
}

}  // namespace

extern "C" {

BY_API void by_frame_symbol_set_target(void* function);
void by_frame_symbol_set_target(void* function) { __atomic_store_n(&target, function, __ATOMIC_RELEASE); }

/// Marks a frame and returns where the real function is.
BY_API void* by_frame_symbol_enter();
void* by_frame_symbol_enter() {
  blockyard::record::mark_frame(true);
  void* function = __atomic_load_n(&target, __ATOMIC_ACQUIRE);
  if (function == nullptr) {
    const char* name = blockyard::record::frame_symbol();
    if (name != nullptr) function = blockyard::record::find_anywhere(name, "by_frame_stub_target").address;
    if (function == nullptr) give_up();
    by_frame_symbol_set_target(function);
  }
  return function;
}

}  // extern "C"
