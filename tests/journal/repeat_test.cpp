// A journal several times over is a sound journal, and each repetition is the journal.
#include "journal/repeat.hpp"

#include <gtest/gtest.h>

#include <set>

#include "journal/check.hpp"
#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Repeat : public ::testing::Test {
 protected:
  Whole repeated(const Whole& written, std::uint64_t times) {
    std::filesystem::remove(folder_ / "once.byj");
    write(folder_ / "once.byj", written);
    outcome_ = repeat(folder_ / "once.byj", folder_ / "often.byj", {.times = times, .overwrite = true}, {});
    return read(folder_ / "often.byj");
  }
  Folder folder_;
  Outcome outcome_;
};

// Two threads; the preamble's two blocks and one of the two measured ones are alive at the end.
Whole level() {
  Whole whole = sample(0, 1, false);
  whole.header.preamble_events = 2;
  whole.events = {{.time_ns = 0, .size = 100, .block = 0},
                  {.time_ns = 0, .size = 200, .block = 1, .thread = 1},
                  {.time_ns = 5'000'000, .size = 300, .block = 2, .thread = 1},
                  {.time_ns = 6'000'000, .size = 400, .block = 3},
                  {.time_ns = 7'000'000, .size = 0, .block = 2, .kind = Kind::free}};
  return whole;
}

TEST_F(Repeat, once_is_the_journal_itself) {
  const Whole written = sample(100'000, 2);
  expect_same(written, repeated(written, 1));
}

TEST_F(Repeat, every_repetition_has_the_call_stacks_of_the_first) {
  const Whole once = sample_with_stacks(2'000);
  const Whole often = repeated(once, 3);
  std::set<std::uint32_t> different;
  for (const Event& event : once.events) {
    if (event.site != no_site) different.insert(event.site);
  }
  EXPECT_EQ(check(folder_ / "often.byj", {}).stacks, different.size());
  expect_same(*once.stacks, *often.stacks);
  const std::size_t from = often.events.size() - once.events.size();
  for (std::size_t i = 0; i < once.events.size(); ++i) ASSERT_EQ(often.events[from + i].site, once.events[i].site);
}

TEST_F(Repeat, passes_every_check_with_or_without_addresses) {
  for (const bool addresses : {true, false}) {
    const Whole once = sample(30'000, 3, addresses);
    const Whole often = repeated(once, 4);
    const CheckResult checked = check(folder_ / "often.byj", {});
    EXPECT_EQ(checked.live_at_end, check(folder_ / "once.byj", {}).live_at_end);
    EXPECT_EQ(checked.events, outcome_.events);
    EXPECT_GE(checked.events, 4 * once.events.size());
    EXPECT_EQ(often.header.threads.size(), once.header.threads.size());
  }
}

TEST_F(Repeat, a_seam_frees_what_lives_on_the_thread_that_gave_it_and_allocates_the_preamble_anew) {
  const Whole often = repeated(level(), 2);
  ASSERT_EQ(often.events.size(), 5U + 3U + 5U);
  EXPECT_EQ(often.header.preamble_events, 2U);
  const std::vector<std::uint64_t> freed = {0, 1, 3};
  const std::vector<std::uint32_t> threads = {0, 1, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const Event& event = often.events[5 + i];
    EXPECT_EQ(event.kind, Kind::free);
    EXPECT_EQ(event.block, freed[i]);
    EXPECT_EQ(event.thread, threads[i]);
    EXPECT_EQ(event.time_ns, 7'001'000 + 1'000 * i);
  }
  EXPECT_EQ(often.events[8].time_ns, 7'004'000U);  // the preamble
  EXPECT_EQ(often.events[9].time_ns, 7'005'000U);
  EXPECT_EQ(often.events[9].block, 5U);
  EXPECT_EQ(often.events[10].time_ns, 7'006'000U + 5'000'000U);
  EXPECT_EQ(often.events[12].block, 6U);
}

TEST_F(Repeat, a_block_freed_twice_is_an_error_with_its_event) {
  spill(folder_ / "bad.txt", "a 8 A0 1 10\nf A0 1 20\nf A0 1 30\n");
  EXPECT_THROW(repeat(folder_ / "bad.txt", folder_ / "out.byj", {.times = 2}, {}), Error);
  EXPECT_EQ(folder_.files(), 1U);
}

TEST_F(Repeat, more_time_than_the_clock_holds_is_an_error) {
  Whole whole = sample(0, 1, false);
  whole.events = {{.time_ns = std::uint64_t{1} << 62, .size = 1, .block = 0}};
  EXPECT_THROW(repeated(whole, 3), Error);
}

}  // namespace
}  // namespace blockyard::journal::testing
