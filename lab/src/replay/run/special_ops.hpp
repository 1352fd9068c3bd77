// What a plan with routes holds besides events.
#pragma once

#include "replay/run/thread_routes.hpp"
#include "replay/run/turn.hpp"

namespace blockyard::replay {

/// For for_each_event(): pauses, waits for an arena, and ends of frames, which go to `end_frame(turn, record)`.
template <typename EndFrame>
class SpecialOps {
 public:
  SpecialOps(const ThreadRoutes& routes, EndFrame end_frame) : routes_(routes), end_frame_(end_frame) {}

  static bool is_special(const Record& record) { return record.kind >= first_special_kind; }

  void operator()(Turn& turn, Record& record) {
    if (record.kind == kind_pause) {
      turn.pause(record.size());
    } else if (record.kind == kind_frame_end) {
      end_frame_(turn, record);
    } else {
      turn.come_to(record.event);
      routes_.await_rewind(record);
    }
  }

 private:
  const ThreadRoutes& routes_;
  EndFrame end_frame_;
};

}  // namespace blockyard::replay
