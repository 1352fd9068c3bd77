/// Undoes what was begun when an exception, or a return, leaves it unfinished. Without try and catch, which do not
/// compile where exceptions are off (-fno-exceptions, as engines have it): there, what would throw ends the program.
#ifndef BLOCKYARD_DETAIL_ON_THROW_HPP
#define BLOCKYARD_DETAIL_ON_THROW_HPP

#include <utility>

namespace blockyard::block {

/// Calls `undo` at the end of the scope, unless done() was called.
template <class Undo>
class OnThrow {
 public:
  explicit OnThrow(Undo undo) : undo_(std::move(undo)) {}
  OnThrow(const OnThrow&) = delete;
  OnThrow& operator=(const OnThrow&) = delete;
  ~OnThrow() {
    if (!done_) {
      undo_();
    }
  }
  void done() { done_ = true; }

 private:
  Undo undo_;
  bool done_ = false;
};

}  // namespace blockyard::block

#endif
