// The hook of dlclose: what lay where an object was unloaded is code of another from now on.
#include <dlfcn.h>

#include "blockyard/detail/visibility.h"
#include "record/linux/loaded_objects.hpp"
#include "record/linux/recorder.hpp"
#include "record/linux/symbols.hpp"

extern "C" {
// NOLINTNEXTLINE(readability-redundant-declaration): exports it
BY_API int dlclose(void* handle) noexcept;
}

int dlclose(void* handle) noexcept {
  static const auto real_dlclose = reinterpret_cast<int (*)(void*)>(blockyard::record::find_next("dlclose").address);
  const int failed = real_dlclose(handle);
  if (failed == 0) {
    blockyard::record::forget_objects();
    blockyard::record::notice_unloaded();
  }
  return failed;
}
