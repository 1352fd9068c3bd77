#include "record/linux/attach/urgent.hpp"

#include <sched.h>

namespace blockyard::record::attach {

Urgent::Urgent() : before_(sched_getscheduler(0)) {
  const int policy = before_ & ~SCHED_RESET_ON_FORK;
  if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE) return;  // urgent already
  const sched_param first{1};
  is_changed_ = sched_setscheduler(0, SCHED_RR | (before_ & SCHED_RESET_ON_FORK), &first) == 0;
}

Urgent::~Urgent() {
  const sched_param none{0};
  if (is_changed_) sched_setscheduler(0, before_, &none);
}

}  // namespace blockyard::record::attach
