#include "record/linux/attached.hpp"

#include <cstring>
#include <span>

#include "blockyard/detail/visibility.h"
#include "record/linux/process.hpp"

extern "C" {

BY_API blockyard::record::AttachReport by_attach_report = {};

BY_API void by_plan() {
  const std::span<const blockyard::record::CodeChange> changes = blockyard::record::plan_for_running();
  by_attach_report.changes = reinterpret_cast<std::uint64_t>(changes.data());
  by_attach_report.change_count = changes.size();
  by_attach_report.failed = 0;
  __atomic_add_fetch(&by_attach_report.calls, 1u, __ATOMIC_RELEASE);
}

BY_API void by_attach(const char* socket) {
  const char* const failure = blockyard::record::attach_to_running(socket, by_attach_report.is_changed != 0);
  by_attach_report.failed = failure != nullptr ? 1 : 0;
  if (failure != nullptr) std::strncpy(by_attach_report.text, failure, sizeof by_attach_report.text - 1);
  __atomic_add_fetch(&by_attach_report.calls, 1u, __ATOMIC_RELEASE);
}

BY_API void by_detach() {
  blockyard::record::detach_from_running();
  by_attach_report.failed = 0;
  __atomic_add_fetch(&by_attach_report.calls, 1u, __ATOMIC_RELEASE);
}

}  // extern "C"
