// What a plan holds: slots, preambles, waits, pairs, times.
#include "replay/plan/planner.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "replay/plan/plan_file.hpp"

namespace blockyard::replay {
namespace {

using journal::Event;
using journal::Kind;

// Composes journals: blocks are numbered as a journal numbers them.
class Events {
 public:
  std::uint64_t allocate(std::uint64_t time_ns, std::uint64_t size, std::uint32_t thread = 0) {
    return give({.time_ns = time_ns, .size = size, .thread = thread, .kind = Kind::allocate});
  }
  std::uint64_t allocate_aligned(std::uint64_t time_ns, std::uint32_t alignment, std::uint64_t size,
                                 std::uint32_t thread = 0) {
    return give(
        {.time_ns = time_ns, .size = size, .alignment = alignment, .thread = thread, .kind = Kind::allocate_aligned});
  }
  void free(std::uint64_t time_ns, std::uint64_t block, std::uint32_t thread = 0) {
    events_.push_back({.time_ns = time_ns, .block = block, .thread = thread, .kind = Kind::free});
  }
  std::uint64_t reallocate(std::uint64_t time_ns, std::uint64_t block, std::uint64_t size, std::uint32_t thread = 0) {
    return give({.time_ns = time_ns, .size = size, .old_block = block, .thread = thread, .kind = Kind::reallocate});
  }
  void mark(std::uint64_t time_ns, std::uint32_t thread = 0) {
    events_.push_back({.time_ns = time_ns, .thread = thread, .kind = Kind::frame_mark});
  }
  [[nodiscard]] const std::vector<Event>& all() const { return events_; }

 private:
  std::uint64_t give(Event event) {
    event.block = blocks_;
    events_.push_back(event);
    return blocks_++;
  }

  std::vector<Event> events_;
  std::uint64_t blocks_ = 0;
};

struct Planned {
  PlanFacts facts;
  std::vector<std::uint32_t> pair;
  std::vector<FrameMark> frames;
  std::map<std::uint32_t, std::vector<Op>> ops;       ///< by journal thread
  std::map<std::uint32_t, std::vector<Op>> preamble;  ///< by journal thread
};

class Planning : public testing::Test {
 protected:
  Planning() : path_(std::filesystem::temp_directory_path() / ("planning-" + std::to_string(getpid()))) {}
  ~Planning() override { std::filesystem::remove(path_); }

  Planned plan(const Events& events, const PlanOptions& options = {}, std::uint64_t preamble_events = 0) {
    Planned planned;
    Planner planner(path_.string(), options);
    planner.add(events.all(), preamble_events);
    planned.facts = planner.finish(true);
    planned.frames = planner.frames();
    planned.pair.assign(planner.pair().begin(), planner.pair().end());
    const PlanFile file(path_.string());
    for (std::size_t thread = 0; thread < file.threads().size(); ++thread) {
      const std::uint32_t name = file.threads()[thread].journal_thread;
      file.for_each_chunk(thread, [&](std::span<const Op> ops) {
        planned.ops[name].insert(planned.ops[name].end(), ops.begin(), ops.end());
      });
      file.for_each_preamble(thread, [&](const Op& op) { planned.preamble[name].push_back(op); });
    }
    return planned;
  }

  std::string error_of(const Events& events, const PlanOptions& options = {}, std::uint64_t preamble_events = 0) {
    try {
      plan(events, options, preamble_events);
    } catch (const journal::Error& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path path_;
};

TEST_F(Planning, an_event_is_paired_with_the_one_that_ends_or_gave_its_block) {
  Events events;
  const auto first = events.allocate(0, 100);           // 0
  const auto second = events.allocate(1, 200);          // 1
  events.mark(2);                                       // 2
  const auto moved = events.reallocate(3, first, 300);  // 3
  events.free(4, moved);                                // 4
  events.allocate(5, 10);                               // 5
  events.free(6, second);                               // 6
  EXPECT_EQ(plan(events).pair, (std::vector<std::uint32_t>{3, 6, none, 4, 3, none, 1}));
}

TEST_F(Planning, the_facts_are_the_journals) {
  Events events;
  const auto a = events.allocate(1'000, 100, 0);
  const auto b = events.allocate(2'000, 50, 1);
  events.mark(2'500, 1);
  events.free(3'000, a, 1);
  const auto c = events.reallocate(4'000, b, 500, 0);
  events.free(6'000, c, 0);
  const PlanFacts facts = plan(events).facts;
  EXPECT_EQ(facts.header.events, 6u);
  EXPECT_EQ(facts.header.measured_events, 5u);
  EXPECT_EQ(facts.header.blocks, 3u);
  EXPECT_EQ(facts.header.peak_bytes, 500u);
  EXPECT_EQ(facts.header.peak_blocks, 2u);
  EXPECT_EQ(facts.largest_bytes, 500u);
  EXPECT_EQ(facts.header.threads, 2u);
  EXPECT_EQ(facts.header.frames, 1u);
  EXPECT_EQ(facts.header.origin_ns, 1'000u);
  EXPECT_EQ(facts.header.duration_ns, 5'000u);
  EXPECT_EQ(facts.remote_frees, 2u);
}

TEST_F(Planning, another_threads_free_waits_for_the_allocation) {
  Events events;
  const auto block = events.allocate(0, 8, 3);
  events.free(1, block, 5);
  const Planned planned = plan(events);
  EXPECT_EQ(planned.ops.at(5)[0].after, 0u);
  EXPECT_EQ(planned.ops.at(5)[0].slot, planned.ops.at(3)[0].slot);
  EXPECT_EQ(planned.facts.waits, 1u);
}

TEST_F(Planning, a_thread_does_not_wait_for_itself) {
  Events events;
  const auto block = events.allocate(0, 8);
  events.free(1, events.reallocate(1, block, 9));
  const Planned planned = plan(events);
  for (const Op& op : planned.ops.at(0)) EXPECT_EQ(op.after, none);
}

// Whoever takes a slot whose last event was another thread's must wait for it, or the two race for the slot.
TEST_F(Planning, every_slot_passes_from_thread_to_thread_by_a_wait) {
  std::mt19937 random(7);
  Events events;
  std::vector<std::uint64_t> live;
  for (std::uint64_t i = 0; i < 60'000; ++i) {
    const std::uint32_t thread = random() % 4;
    if (live.empty() || random() % 100 < 52) {
      live.push_back(events.allocate(i, random() % 100, thread));
    } else {
      const std::size_t pick = random() % live.size();
      if (random() % 8 == 0) {
        live[pick] = events.reallocate(i, live[pick], 5, thread);
      } else {
        events.free(i, live[pick], thread);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(pick));
      }
    }
  }
  const Planned planned = plan(events);
  std::map<std::uint32_t, std::pair<std::uint32_t, Op>> by_event;
  for (const auto& [thread, ops] : planned.ops) {
    for (const Op& op : ops) by_event[op.event] = {thread, op};
  }
  std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> last;  // by slot: thread, event
  for (const auto& [event, at] : by_event) {
    const auto& [thread, op] = at;
    const auto before = last.find(op.slot);
    const bool passed = before != last.end() && before->second.first != thread;
    ASSERT_EQ(op.after, passed ? before->second.second : none) << "event " << event;
    last[op.slot] = {thread, event};
  }
  EXPECT_EQ(by_event.size(), 60'000u);
}

TEST_F(Planning, slots_are_recycled) {
  Events events;
  for (std::uint64_t i = 0; i < 1'000; ++i) events.free(2 * i + 1, events.allocate(2 * i, 8));
  EXPECT_LE(plan(events).facts.header.slots, 64u);
}

TEST_F(Planning, slots_that_other_threads_freed_are_recycled_too) {
  Events events;
  for (std::uint64_t i = 0; i < 50'000; ++i) events.free(2 * i + 1, events.allocate(2 * i, 8, 0), 1);
  EXPECT_LE(plan(events).facts.header.slots, Slots::rest_events + 128);
}

TEST_F(Planning, a_stretch_begins_with_the_blocks_alive_on_the_threads_that_allocated_them) {
  Events events;
  const auto kept = events.allocate(0, 10, 0);
  const auto gone = events.allocate(1, 20, 0);
  events.allocate_aligned(2, 64, 30, 1);
  events.free(3, gone, 0);
  const auto grown = events.reallocate(1'000'000'000, kept, 40, 1);
  events.free(2'000'000'500, grown, 0);
  events.allocate(2'000'001'000, 50, 1);
  events.allocate(3'000'000'000, 60, 1);
  const Planned planned = plan(events, {.from_s = 2.0, .to_s = 3.0});
  EXPECT_EQ(planned.facts.header.preamble_blocks, 2u);
  EXPECT_EQ(planned.facts.header.preamble_bytes, 70u);
  EXPECT_EQ(planned.facts.header.measured_events, 2u);
  EXPECT_EQ(planned.facts.header.peak_bytes, 80u);
  ASSERT_EQ(planned.preamble.at(1).size(), 2u);
  EXPECT_EQ(planned.preamble.at(1)[0].event, 2u);
  EXPECT_EQ(planned.preamble.at(1)[0].alignment_log2, 6u);
  EXPECT_EQ(planned.preamble.at(1)[1].event, 4u);
  EXPECT_EQ(planned.preamble.at(1)[1].size(), 40u);
  EXPECT_EQ(planned.ops.at(0)[0].after, none) << "the preamble is over before the clock starts";
  EXPECT_EQ(planned.ops.at(0)[0].size(), 40u);
  EXPECT_EQ(planned.ops.at(0)[0].delta_ns, 500u) << "times count from the stretch's beginning";
  EXPECT_EQ(planned.ops.at(1)[0].delta_ns, 1'000u);
  EXPECT_EQ(planned.pair.size(), 7u) << "events behind the stretch are not read";
}

TEST_F(Planning, without_an_end_the_last_time_is_measured_too) {
  Events events;
  events.allocate(0, 10);
  events.allocate(~std::uint64_t{0}, 20);
  EXPECT_EQ(plan(events).facts.header.measured_events, 2u);
}

TEST_F(Planning, a_journals_own_preamble_is_not_measured) {
  Events events;
  const auto block = events.allocate(0, 10);
  events.allocate(0, 20);
  events.free(50, block);
  const Planned planned = plan(events, {}, 2);
  EXPECT_EQ(planned.facts.header.preamble_blocks, 2u);
  EXPECT_EQ(planned.facts.header.measured_events, 1u);
}

TEST_F(Planning, one_thread_has_all_events_in_order_and_never_waits) {
  Events events;
  const auto block = events.allocate(0, 8, 4);
  events.allocate(1, 8, 2);
  events.free(2, block, 7);
  const Planned planned = plan(events, {.from_s = {}, .to_s = {}, .one_thread = true});
  ASSERT_EQ(planned.ops.size(), 1u);
  ASSERT_EQ(planned.ops.at(0).size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(planned.ops.at(0)[i].event, i);
    EXPECT_EQ(planned.ops.at(0)[i].after, none);
  }
}

TEST_F(Planning, a_wait_longer_than_four_seconds_keeps_its_length) {
  Events events;
  events.allocate(0, 8);
  events.allocate(60'000'000'000, 8);
  const Planned planned = plan(events);
  std::uint64_t time_ns = 0;
  for (const Op& op : planned.ops.at(0)) time_ns += op.kind == kind_pause ? op.size() : op.delta_ns;
  EXPECT_EQ(time_ns, 60'000'000'000u);
  EXPECT_EQ(planned.facts.header.measured_events, 2u);
}

TEST_F(Planning, sizes_of_more_than_four_gigabytes_are_kept) {
  Events events;
  events.free(1, events.allocate(0, max_size));
  const Planned planned = plan(events);
  EXPECT_EQ(planned.ops.at(0)[0].size(), max_size);
  EXPECT_EQ(planned.ops.at(0)[1].size(), max_size);
}

TEST_F(Planning, more_ops_than_one_chunk_holds_keep_their_order) {
  Events events;
  for (std::uint64_t i = 0; i < 3 * chunk_ops + 5; ++i) events.allocate(i, i);
  const Planned planned = plan(events);
  ASSERT_EQ(planned.ops.at(0).size(), 3 * chunk_ops + 5);
  for (std::uint32_t i = 0; i < planned.ops.at(0).size(); ++i) ASSERT_EQ(planned.ops.at(0)[i].size(), i);
}

TEST_F(Planning, only_frames_of_the_stretch_count) {
  Events events;
  events.allocate(0, 8);
  events.mark(500'000'000);
  events.allocate(1'500'000'000, 8);
  events.mark(1'750'000'000, 2);
  const Planned planned = plan(events, {.from_s = 1.0});
  ASSERT_EQ(planned.frames.size(), 1u);
  EXPECT_EQ(planned.frames[0].time_ns, 750'000'000u);
  EXPECT_EQ(planned.frames[0].event, 3u);
  EXPECT_EQ(planned.frames[0].thread, 2u);
}

TEST_F(Planning, an_empty_stretch_says_where_the_journal_ends) {
  Events events;
  events.allocate(1'000'000'000, 8);
  EXPECT_EQ(error_of(events, {.from_s = 5.0}),
            "no allocation or free lies between 5.000 s and the end: the journal ends at 1.000 s");
}

TEST_F(Planning, a_journal_that_is_only_a_preamble_is_an_error) {
  Events events;
  events.allocate(0, 8);
  EXPECT_EQ(error_of(events, {}, 1).find("there is nothing to measure: the whole journal is its preamble"), 0u);
}

TEST_F(Planning, a_journal_without_events_is_an_error) { EXPECT_EQ(error_of(Events()), "the journal has no events"); }

TEST_F(Planning, a_size_that_no_process_can_address_is_an_error) {
  Events events;
  events.allocate(0, max_size + 1);
  EXPECT_NE(error_of(events).find("event 0 asks for 281474976710656 bytes"), std::string::npos);
}

TEST_F(Planning, a_free_of_a_dead_block_is_an_error) {
  Events events;
  const auto block = events.allocate(0, 8);
  events.free(1, block);
  events.free(2, block);
  EXPECT_NE(error_of(events).find("event 2 frees a block that is not alive"), std::string::npos);
}

TEST_F(Planning, nothing_is_left_behind_by_a_plan_that_failed) {
  error_of(Events());
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(std::filesystem::exists(path_.string() + ".part"));
}

TEST_F(Planning, every_flipped_bit_of_a_plan_is_noticed) {
  Events events;
  for (std::uint64_t i = 0; i < 20; ++i) events.free(2 * i + 1, events.allocate(2 * i, 8, 0), 1);
  events.mark(1'000);
  plan(events, {.from_s = 0.000'000'011});
  const auto length = std::filesystem::file_size(path_);
  for (std::uint64_t at = 0; at < length; ++at) {
    const auto flip = [&] {
      std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(file.get() ^ (1 << (at % 8)));
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
    };
    flip();
    EXPECT_THROW(
        {
          const PlanFile file(path_.string());
          for (std::size_t thread = 0; thread < file.threads().size(); ++thread)
            file.for_each_chunk(thread, [](auto) {});
        },
        journal::Error)
        << "byte " << at;
    flip();
  }
}

TEST_F(Planning, a_shortened_plan_is_noticed) {
  Events events;
  events.allocate(0, 8);
  plan(events);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_THROW(PlanFile{path_.string()}, journal::Error);
  std::filesystem::resize_file(path_, 10);
  EXPECT_THROW(PlanFile{path_.string()}, journal::Error);
}

}  // namespace
}  // namespace blockyard::replay
