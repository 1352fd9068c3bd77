// heaptrack's two forms become one thread's allocations and frees, marked as unpaced.
#include <gtest/gtest.h>

#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Heaptrack : public ::testing::Test {
 protected:
  Whole read_text(const std::string& text) {
    spill(folder_ / "a", text);
    return read(folder_ / "a");
  }
  void expect_error(const std::string& text, const std::string& part) {
    spill(folder_ / "a", text);
    const std::string error = error_of(folder_ / "a");
    EXPECT_NE(error.find(part), std::string::npos) << "got: " << error;
  }
  Folder folder_;
};

const std::string head = "v 10400 3\nX /usr/bin/game --fast\nI 1000 5e2990\n";

TEST_F(Heaptrack, raw_pointers_become_blocks) {
  const Whole got = read_text(head + "t 7f00 0\n+ 11c00 4 55e33ed19530\nc a\n+ 5 c 55e33ed2b1d0\n- 55e33ed19530\n");
  ASSERT_EQ(got.events.size(), 3U);
  EXPECT_EQ(got.events[0].size, 0x11C00U);
  EXPECT_EQ(got.events[1].block, 1U);
  EXPECT_GE(got.events[1].time_ns, 10'000'000U);
  EXPECT_EQ(got.events[2].kind, Kind::free);
  EXPECT_EQ(got.events[2].block, 0U);
  EXPECT_FALSE(got.header.paced);
  EXPECT_EQ(got.header.program, "/usr/bin/game");
  EXPECT_EQ(got.header.command.size(), 2U);
  EXPECT_EQ(got.header.recorder, "heaptrack 1.4.0");
}

TEST_F(Heaptrack, interpreted_frees_take_the_youngest_block_of_their_kind) {
  const Whole got = read_text(head + "a 10 4\n+ 0\n+ 0\na 20 4\n+ 1\n- 0\n- 0\n");
  ASSERT_EQ(got.events.size(), 5U);
  EXPECT_EQ(got.events[2].size, 0x20U);
  EXPECT_EQ(got.events[3].block, 1U);
  EXPECT_EQ(got.events[4].block, 0U);
}

TEST_F(Heaptrack, arguments_with_line_ends_are_no_events) {
  const Whole got = read_text("v 10400 3\nX python3 -c a=1\n+ 5\n- def\nI 1000 5e2990\n+ 5 c 10\n");
  EXPECT_EQ(got.events.size(), 1U);
}

TEST_F(Heaptrack, what_it_missed_is_counted) {
  const Whole got = read_text(head + "- 30\n+ 5 1 10\n+ 6 1 10\n- 10\n");
  ASSERT_EQ(got.events.size(), 4U);
  EXPECT_EQ(got.events[1].kind, Kind::free);
  ASSERT_EQ(got.notes.size(), 3U);
  EXPECT_EQ(got.notes[1].substr(0, 7), "1 frees");
  EXPECT_EQ(got.notes[2].substr(0, 8), "1 blocks");
}

TEST_F(Heaptrack, a_newer_file_version_is_refused) { expect_error("v 20000 9\n", "newer"); }
TEST_F(Heaptrack, an_unknown_line_names_itself) { expect_error(head + "q 1\n", "line 4"); }
TEST_F(Heaptrack, an_index_nobody_described_names_its_line) { expect_error(head + "+ 7\n", "line 4"); }
TEST_F(Heaptrack, a_size_that_no_process_can_address_names_its_line) {
  expect_error(head + "a ffffffffffffffff 1\n", "line 4: it asks for 18446744073709551615 bytes");
  expect_error(head + "+ 1000000000000 1 10\n", "line 4: it asks for 281474976710656 bytes");
}
TEST_F(Heaptrack, an_interpreted_free_of_nothing_names_its_line) { expect_error(head + "a 1 1\n- 0\n", "line 5"); }

}  // namespace
}  // namespace blockyard::journal::testing
