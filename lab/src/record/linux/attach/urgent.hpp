#pragma once

namespace blockyard::record::attach {

/// While one lives, the calling thread runs before others, where it has the right to: a stopped thread waits for it.
class Urgent {
 public:
  Urgent();
  ~Urgent();
  Urgent(const Urgent&) = delete;
  Urgent& operator=(const Urgent&) = delete;

 private:
  int before_;
  bool is_changed_ = false;
};

}  // namespace blockyard::record::attach
