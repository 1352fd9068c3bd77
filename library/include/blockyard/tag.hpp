/// Tags on a scope, for C++. tag.h says what a tag is and what it costs.
///
///   blockyard::tag physics("physics");
///   pool.submit([task, path = by_tag_current()] {
///     blockyard::tag same(path);
///     task();
///   });
#ifndef BLOCKYARD_TAG_HPP
#define BLOCKYARD_TAG_HPP

#include "blockyard/tag.h"

namespace blockyard {

/// The calling thread has a tag while one lives. Tags end in the reverse order of their making, on the same thread.
class tag {
 public:
  /// As by_tag_push(): `name` must stay unchanged while this lives.
  explicit tag(const char* name) noexcept { by_tag_push(name); }
  /// As by_tag_enter().
  explicit tag(by_tag_path path) noexcept { by_tag_enter(path); }
  ~tag() { by_tag_pop(); }
  tag(const tag&) = delete;
  tag& operator=(const tag&) = delete;
};

}  // namespace blockyard
#endif
