// Gives a journal without times a pace that somebody chose.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "journal/event.hpp"

namespace blockyard::journal {

/// What somebody wants of a pace.
struct Pace {
  double events_per_s = 0;           ///< 0: as many as make a frame last a sixtieth of a second
  std::uint64_t events_a_frame = 0;  ///< a frame mark comes behind so many events; 0: no marks
};

/// Spaces events evenly, the n-th at n / rate, and marks frames on the first event's thread. The preamble stays at 0.
class Pacer {
 public:
  explicit Pacer(const Pace& pace)
      : events_a_frame_(pace.events_a_frame),
        ns_an_event_(1e9 / (pace.events_per_s != 0 ? pace.events_per_s
                                                   : frames_per_s * static_cast<double>(pace.events_a_frame))) {}

  /// Calls `put` with the event at its new time, and with the mark of a frame that it ends.
  template <typename Put>
  void add(const Event& event, bool is_preamble, Put put) {
    Event paced = event;
    paced.time_ns = is_preamble ? 0 : time_of(++events_);
    put(paced);
    if (is_preamble || events_a_frame_ == 0) return;
    if (events_ == 1) thread_ = event.thread;
    if (events_ % events_a_frame_ != 0) return;
    Event mark;
    mark.kind = Kind::frame_mark;
    mark.thread = thread_;
    mark.time_ns = paced.time_ns;
    put(mark);
  }

  /// Marks the header as what it is.
  void mark(Header& header) const {
    header.paced = true;
    header.repairs.push_back(
        "the pace is made up: an event every " + std::to_string(time_of(1)) + " ns" +
        (events_a_frame_ == 0 ? "" : ", a frame of " + std::to_string(events_a_frame_) + " events"));
  }

 private:
  static constexpr double frames_per_s = 60;
  std::uint64_t time_of(std::uint64_t event) const {
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(event) * ns_an_event_));
  }

  std::uint64_t events_a_frame_;
  double ns_an_event_;
  std::uint64_t events_ = 0;
  std::uint32_t thread_ = 0;
};

}  // namespace blockyard::journal
