// Records become journals: windows, reallocs that overlap other threads, and what can't be right is put right and
// counted.
#include "record/collect/interpreter.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "journal/check.hpp"
#include "journal/reader.hpp"

#include "../shared/events_as_words.hpp"

namespace {

using namespace blockyard;
using namespace blockyard::record;

class Interpreted : public testing::Test {
 protected:
  Interpreted()
      : folder_(std::filesystem::temp_directory_path() / ("blockyard-interpreter-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    threads_ = {{101, "main"}, {102, "worker"}};
  }
  ~Interpreted() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "test.byj") const { return folder_ / name; }

  Interpreter& start(WindowPlan plan = {}) {
    OutputSettings output;
    output.path = path();
    output.header.has_addresses = true;
    interpreter_ = std::make_unique<Interpreter>(std::move(output), plan, threads_);
    return *interpreter_;
  }
  void allocate(std::uint32_t thread, std::uint64_t stamp, std::uint64_t address, std::uint64_t size = 16) {
    const std::uint64_t record[] = {pack(RecordKind::allocate, address), stamp, pack_size(size, 0)};
    interpreter_->apply(thread, stamp, record);
  }
  void allocate_aligned(std::uint32_t thread, std::uint64_t stamp, std::uint64_t address, std::uint64_t size,
                        unsigned log2) {
    const std::uint64_t record[] = {pack(RecordKind::allocate_aligned, address), stamp, pack_size(size, log2)};
    interpreter_->apply(thread, stamp, record);
  }
  void mark(RecordKind kind, std::uint32_t thread, std::uint64_t stamp, std::uint64_t address = 0) {
    const std::uint64_t record[] = {pack(kind, address), stamp};
    interpreter_->apply(thread, stamp, record);
  }
  void free(std::uint32_t thread, std::uint64_t stamp, std::uint64_t address) {
    mark(RecordKind::free, thread, stamp, address);
  }
  void begin_reallocate(std::uint32_t thread, std::uint64_t stamp, std::uint64_t address) {
    mark(RecordKind::reallocate_begin, thread, stamp, address);
  }
  void end_reallocate(std::uint32_t thread, std::uint64_t stamp, std::uint64_t address, std::uint64_t size) {
    const std::uint64_t record[] = {pack(RecordKind::reallocate_end, address), stamp, pack_size(size, 0)};
    interpreter_->apply(thread, stamp, record);
  }
  std::vector<journal::Event> finish(std::uint64_t stamp, const std::string& name = "test.byj") {
    interpreter_->finish(stamp, false);
    return read(name);
  }
  /// The events of a journal that passes the check, addresses included.
  std::vector<journal::Event> read(const std::string& name) {
    journal::check(path(name), {});
    const auto source = journal::open(path(name));
    std::vector<journal::Event> events;
    for (auto some = source->next(); !some.empty(); some = source->next())
      events.insert(events.end(), some.begin(), some.end());
    header_ = source->header();
    return events;
  }

  std::filesystem::path folder_;
  std::vector<ThreadFacts> threads_;
  std::unique_ptr<Interpreter> interpreter_;
  journal::Header header_;
};

using journal::testing::as_words;

TEST_F(Interpreted, a_reallocate_is_one_event_from_its_start_to_its_end) {
  start();
  allocate(0, 10, 0x1000, 100);
  begin_reallocate(0, 20, 0x1000);
  end_reallocate(0, 35, 0x2000, 200);
  const auto events = finish(40);
  ASSERT_EQ(as_words(events), "a100 r0>1:200");
  EXPECT_EQ(events[1].time_ns, 20u);
  EXPECT_EQ(events[1].duration_ns, 15u);
}

TEST_F(Interpreted, a_reallocate_that_others_overlap_keeps_time_from_falling) {
  start();
  allocate(0, 10, 0x1000);
  begin_reallocate(0, 20, 0x1000);
  allocate(1, 25, 0x3000);
  end_reallocate(0, 30, 0x2000, 32);
  const auto events = finish(40);
  ASSERT_EQ(as_words(events), "a16 a16 r0>2:32");
  EXPECT_EQ(events[2].time_ns, 25u);
  EXPECT_EQ(events[2].duration_ns, 5u);
}

TEST_F(Interpreted, an_old_block_that_another_thread_gets_during_a_reallocate_is_freed_first) {
  start();
  allocate(0, 10, 0x1000);
  begin_reallocate(0, 20, 0x1000);
  allocate(1, 25, 0x1000, 64);
  end_reallocate(0, 30, 0x2000, 32);
  EXPECT_EQ(as_words(finish(40)), "a16 f0 a64 a32");
  EXPECT_EQ(interpreter_->repairs().split_reallocates, 1u);
  EXPECT_EQ(interpreter_->repairs().missed_frees, 0u);
}

TEST_F(Interpreted, a_failed_reallocate_leaves_the_block_unchanged) {
  start();
  allocate(0, 10, 0x1000);
  begin_reallocate(0, 20, 0x1000);
  end_reallocate(0, 30, 0, 1 << 30);
  free(0, 40, 0x1000);
  EXPECT_EQ(as_words(finish(50)), "a16 f0");
  EXPECT_EQ(interpreter_->repairs().unknown_frees, 0u);
}

TEST_F(Interpreted, a_reallocate_to_nothing_is_a_free) {
  start();
  allocate(0, 10, 0x1000);
  begin_reallocate(0, 20, 0x1000);
  end_reallocate(0, 30, 0, 0);
  EXPECT_EQ(as_words(finish(50)), "a16 f0");
}

TEST_F(Interpreted, a_free_of_an_unknown_block_is_left_out_and_counted) {
  start();
  free(0, 10, 0x1000);
  allocate(0, 20, 0x1000);
  EXPECT_EQ(finish(30).size(), 1u);
  EXPECT_EQ(interpreter_->repairs().unknown_frees, 1u);
}

TEST_F(Interpreted, an_address_given_again_without_a_free_gets_one_and_is_counted) {
  start();
  allocate(0, 10, 0x1000);
  allocate(1, 20, 0x1000);
  EXPECT_EQ(as_words(finish(30)), "a16 f0 a16");
  EXPECT_EQ(interpreter_->repairs().missed_frees, 1u);
}

TEST_F(Interpreted, a_window_begins_with_the_blocks_alive_in_their_order) {
  WindowPlan plan;
  plan.open_at = 100;
  plan.close_at = 200;
  start(plan);
  allocate(0, 10, 0x3000, 30);
  allocate_aligned(1, 20, 0x1000, 10, 6);
  allocate(0, 30, 0x2000, 20);
  free(0, 40, 0x3000);
  free(1, 150, 0x2000);
  allocate(0, 250, 0x4000);
  const auto events = finish(300);
  EXPECT_EQ(header_.preamble_events, 2u);
  EXPECT_TRUE(header_.cut_at_end);
  ASSERT_EQ(as_words(events), "m64:10 a20 f1");
  EXPECT_EQ(events[0].address, 0x1000u);
  EXPECT_EQ(header_.threads[events[0].thread].id, 102u);
  EXPECT_EQ(events[2].time_ns, 50u);
  EXPECT_TRUE(interpreter_->is_over());
}

TEST_F(Interpreted, a_window_opens_and_closes_even_when_the_program_is_silent) {
  WindowPlan plan;
  plan.open_at = 100;
  plan.close_at = 200;
  start(plan);
  allocate(0, 10, 0x1000);
  interpreter_->advance(150);
  interpreter_->advance(220);
  EXPECT_TRUE(interpreter_->is_over());
  EXPECT_EQ(read("test.byj").size(), 1u);
  EXPECT_EQ(header_.preamble_events, 1u);
}

TEST_F(Interpreted, each_window_after_the_first_is_a_journal_of_its_own) {
  WindowPlan plan;
  plan.open_at = never;
  start(plan);
  allocate(0, 10, 0x1000);
  interpreter_->toggle(20);
  allocate(0, 30, 0x2000);
  interpreter_->toggle(40);
  free(0, 50, 0x1000);
  interpreter_->toggle(60);
  free(0, 70, 0x2000);
  interpreter_->finish(80, false);
  EXPECT_EQ(read("test.byj").size(), 2u);
  EXPECT_EQ(header_.preamble_events, 1u);
  EXPECT_TRUE(header_.cut_at_end);
  const auto second = read("test-2.byj");
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(header_.preamble_events, 1u);
  EXPECT_FALSE(header_.cut_at_end);
  EXPECT_EQ(second[1].time_ns, 10u);
}

TEST_F(Interpreted, a_block_in_the_middle_of_a_reallocate_when_the_window_opens_is_an_allocation) {
  WindowPlan plan;
  plan.open_at = 25;
  start(plan);
  allocate(0, 10, 0x1000);
  begin_reallocate(0, 20, 0x1000);
  end_reallocate(0, 30, 0x2000, 64);
  free(0, 40, 0x2000);
  EXPECT_EQ(as_words(finish(50)), "a64 f0");
}

TEST_F(Interpreted, a_forked_child_starts_from_its_parents_blocks) {
  start();
  std::vector<LiveBlocks::Entry> inherited;
  interpreter_->on_fork = [&](std::uint64_t, const LiveBlocks& live) { inherited = live.in_order(); };
  allocate(0, 10, 0x2000, 20);
  allocate(0, 20, 0x1000, 10);
  mark(RecordKind::fork_mark, 0, 30);
  allocate(0, 40, 0x3000);
  finish(50);
  OutputSettings output;
  output.path = path("child.byj");
  output.header.has_addresses = true;
  WindowPlan plan;
  plan.open_at = 60;
  interpreter_ = std::make_unique<Interpreter>(std::move(output), plan, threads_);
  interpreter_->inherit(inherited, {});
  free(0, 70, 0x1000);
  EXPECT_EQ(as_words(finish(80, "child.byj")), "a20 a10 f1");
  EXPECT_EQ(interpreter_->repairs().unknown_frees, 0u);
}

/// The record that defines a path of tags, as words.
std::vector<std::uint64_t> tag_path(std::uint32_t number, std::uint32_t parent, const std::string& name) {
  const TagFacts facts{number, parent};
  std::string text(reinterpret_cast<const char*>(&facts), sizeof facts);
  text += name;
  std::vector<std::uint64_t> record(2 + (text.size() + 7) / 8);
  record[0] = pack(RecordKind::tag_path, text.size());
  std::memcpy(record.data() + 2, text.data(), text.size());
  return record;
}

TEST_F(Interpreted, an_event_has_the_text_of_its_tags_path) {
  start();
  interpreter_->apply(0, 1, tag_path(7, 0, "loading").data());
  interpreter_->apply(1, 2, tag_path(9, 7, "//textures/").data());
  // Numbers out of range and unknown parents are no tags.
  interpreter_->apply(1, 3, tag_path(0, 0, "none").data());
  interpreter_->apply(1, 3, tag_path(most_tag_paths + 1, 0, "none").data());
  interpreter_->apply(1, 4, tag_path(3, 99, "orphan").data());
  const std::uint32_t numbers[] = {7, 9, 3, 0, 8, ~0u};
  std::uint64_t stamp = 10;
  for (const std::uint32_t number : numbers) {
    const std::uint64_t record[] = {pack(RecordKind::allocate, 0x1000 * stamp) | site_flag, stamp, pack_size(16, 0),
                                    pack_pair(0, number)};
    interpreter_->apply(0, stamp++, record);
  }
  const std::uint64_t freed[] = {pack(RecordKind::free, 0x1000 * 10) | site_flag, stamp, pack_pair(0, 9)};
  interpreter_->apply(1, stamp, freed);
  const auto events = finish(40);
  std::vector<std::string> tags;
  for (const auto& event : events) tags.push_back(header_.names[event.tag]);
  EXPECT_EQ(tags, (std::vector<std::string>{"loading", "loading/textures", "orphan", "", "", "", "loading/textures"}));
}

TEST_F(Interpreted, nothing_is_kept_of_a_thread_that_has_ended) {
  start();
  const auto allocate_at_node_1 = [&](std::uint64_t stamp, std::uint64_t address) {
    const std::uint64_t record[] = {pack(RecordKind::allocate, address) | site_flag, stamp, pack_size(16, 0),
                                    pack_pair(1, 0)};
    interpreter_->apply(1, stamp, record);
  };
  const std::uint64_t node[] = {pack(RecordKind::stack_node, 0x4000 << 1), 10, pack_pair(1, 0)};
  interpreter_->apply(1, 10, node);
  allocate_at_node_1(11, 0x1000);
  interpreter_->thread_ended(1);
  interpreter_->thread_ended(77);
  allocate_at_node_1(12, 0x2000);
  const auto events = finish(40);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NE(events[0].site, journal::no_site);
  EXPECT_EQ(events[1].site, journal::no_site);
}

TEST_F(Interpreted, a_journal_that_can_not_be_written_is_named_with_the_reason) {
  OutputSettings output;
  output.path = path("no/such/folder.byj");
  interpreter_ = std::make_unique<Interpreter>(std::move(output), WindowPlan{}, threads_);
  allocate(0, 10, 0x1000);
  free(0, 20, 0x1000);
  interpreter_->finish(30, false);
  const auto journals = interpreter_->journals();
  ASSERT_EQ(journals.size(), 1u);
  EXPECT_NE(journals[0].error.find("No such file"), std::string::npos);
}

TEST_F(Interpreted, a_full_disk_ends_the_journal_and_not_the_program) {
  OutputSettings output;
  output.path = "/dev/full";
  output.overwrite = true;
  interpreter_ = std::make_unique<Interpreter>(std::move(output), WindowPlan{}, threads_);
  allocate(0, 10, 0x1000);
  interpreter_->flush();
  free(0, 20, 0x1000);
  interpreter_->finish(30, false);
  ASSERT_EQ(interpreter_->journals().size(), 1u);
  EXPECT_NE(interpreter_->journals()[0].error.find("No space left"), std::string::npos);
}

}  // namespace
