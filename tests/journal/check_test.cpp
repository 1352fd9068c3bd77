// check finds what a Writer can't see: it lets through any order of frees and any addresses.
#include <gtest/gtest.h>

#include "journal/check.hpp"
#include "journal/facts.hpp"
#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Check : public ::testing::Test {
 protected:
  std::string sentence(std::initializer_list<Event> events, std::uint64_t preamble = 0) {
    Whole whole = sample(0);
    whole.header.preamble_events = preamble;
    whole.events = events;
    std::filesystem::remove(folder_ / "a.byj");
    write(folder_ / "a.byj", whole);
    try {
      check(folder_ / "a.byj", {});
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  void expect(const std::string& sentence, const std::string& part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << "got: " << sentence;
  }
  Folder folder_;
};

TEST_F(Check, a_sound_journal_passes_with_its_counts) {
  const Whole whole = sample(100'000);
  write(folder_ / "a.byj", whole);
  const CheckResult result = check(folder_ / "a.byj", {});
  EXPECT_EQ(result.events, 100'000U);
  EXPECT_TRUE(result.has_addresses);
  EXPECT_EQ(result.threads, 3U);
}

TEST_F(Check, a_double_free_names_event_and_byte) {
  const std::string got =
      sentence({{.block = 0, .address = 16}, {.block = 0, .kind = Kind::free}, {.block = 0, .kind = Kind::free}});
  expect(got, "event 2: block 0 is freed twice");
  expect(got, "(in the block at byte ");
}

TEST_F(Check, a_reallocate_of_a_block_that_is_gone_is_found) {
  expect(sentence({{.block = 0, .address = 16},
                   {.block = 0, .kind = Kind::free},
                   {.block = 1, .old_block = 0, .address = 16, .kind = Kind::reallocate}}),
         "event 2: block 0 is freed twice");
}

TEST_F(Check, an_address_live_twice_names_both_events) {
  const std::string got = sentence({{.block = 0, .address = 16}, {.block = 1, .address = 16}});
  expect(got, "event 1: address 0x10 is live twice");
  expect(got, "allocated by event 0");
}

TEST_F(Check, a_reallocate_in_place_is_fine) {
  EXPECT_EQ(
      sentence({{.block = 0, .address = 16}, {.block = 1, .old_block = 0, .address = 16, .kind = Kind::reallocate}}),
      "");
}

TEST_F(Check, a_preamble_that_frees_is_found) {
  expect(sentence({{.block = 0, .address = 16}, {.block = 0, .kind = Kind::free}}, 2), "event 1: it is no allocation");
}

TEST_F(Check, a_preamble_longer_than_the_journal_is_found) {
  expect(sentence({{.block = 0, .address = 16}}, 2), "only 1 events");
}

TEST(Facts, frames_are_cut_by_the_marks_of_the_thread_that_marks_most) {
  Folder folder;
  Whole whole = sample(0);
  const auto allocate = [&whole](std::uint64_t time, std::uint32_t thread, std::uint64_t block) {
    whole.events.push_back({.time_ns = time, .size = 10, .block = block, .address = 16 * block + 16, .thread = thread});
  };
  const auto mark = [&whole](std::uint64_t time, std::uint32_t thread) {
    whole.events.push_back({.time_ns = time, .thread = thread, .kind = Kind::frame_mark});
  };
  allocate(1, 0, 0);
  mark(10, 1);
  allocate(11, 2, 1);
  allocate(12, 0, 2);
  mark(15, 0);
  mark(20, 1);
  allocate(21, 0, 3);
  write(folder / "a.byj", whole);
  const Facts facts = gather_facts(folder / "a.byj", {});
  ASSERT_TRUE(facts.marked_frames);
  EXPECT_EQ(facts.frame_thread, 1U);
  ASSERT_EQ(facts.frames.size(), 2U);
  EXPECT_EQ(facts.frames[0].events, 1U);
  EXPECT_EQ(facts.frames[1].events, 2U);
  EXPECT_EQ(facts.frames[1].bytes, 20U);
  EXPECT_EQ(facts.frames[1].begin_ns, 10U);
}

}  // namespace
}  // namespace blockyard::journal::testing
