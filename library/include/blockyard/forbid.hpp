/// A scope that must not allocate, for C++. forbid.h says what that means and costs.
///
///   const blockyard::no_allocation here("audio callback");
#ifndef BLOCKYARD_FORBID_HPP
#define BLOCKYARD_FORBID_HPP

#include "blockyard/forbid.h"

namespace blockyard {

/// The calling thread must not allocate while one lives. They end in the reverse order of their making, on the same
/// thread.
class no_allocation {
 public:
  /// As by_forbid_begin(): `name` must stay unchanged while this lives.
  explicit no_allocation(const char* name) noexcept { by_forbid_begin(name); }
  ~no_allocation() { by_forbid_end(); }
  no_allocation(const no_allocation&) = delete;
  no_allocation& operator=(const no_allocation&) = delete;
};

}  // namespace blockyard
#endif
