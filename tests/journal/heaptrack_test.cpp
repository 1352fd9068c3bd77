// heaptrack's two forms become one thread's allocations and frees, marked as unpaced.
#include <gtest/gtest.h>

#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Heaptrack : public OfText {};

const std::string opening = "v 10400 3\nX /usr/bin/game --fast\nI 1000 5e2990\n";

TEST_F(Heaptrack, raw_pointers_become_blocks) {
  const Whole got = read_text(opening + "t 7f00 0\n+ 11c00 4 55e33ed19530\nc a\n+ 5 c 55e33ed2b1d0\n- 55e33ed19530\n");
  ASSERT_EQ(as_words(got.events), "a72704 a5 f0");
  EXPECT_GE(got.events[1].time_ns, 10'000'000U);
  EXPECT_FALSE(got.header.paced);
  EXPECT_EQ(got.header.program, "/usr/bin/game");
  EXPECT_EQ(got.header.command.size(), 2U);
  EXPECT_EQ(got.header.recorder, "heaptrack 1.4.0");
}

TEST_F(Heaptrack, interpreted_frees_take_the_youngest_block_of_their_kind) {
  const Whole got = read_text(opening + "a 10 4\n+ 0\n+ 0\na 20 4\n+ 1\n- 0\n- 0\n");
  EXPECT_EQ(as_words(got.events), "a16 a16 a32 f1 f0");
}

/// The stack's functions and addresses, leaf first.
std::string stack_of(const Whole& whole, std::size_t event) {
  const Stacks& stacks = *whole.stacks;
  std::string text;
  for (std::uint32_t node = whole.events[event].site; node != no_node; node = stacks.nodes()[node].parent) {
    const std::uint32_t index = stacks.nodes()[node].frame;
    const Frame& frame = stacks.frames()[index];
    if (!text.empty()) text += " < ";
    text += frame.module == no_module ? "?" : stacks.modules()[frame.module].path;
    text += '+';
    text += std::to_string(frame.address);
    for (const Function& function : stacks.names(index)) {
      (text += ' ') += stacks.text(function.name);
      (text += '@') += stacks.text(function.file);
      (text += ':') += std::to_string(function.line);
    }
  }
  return text;
}

TEST_F(Heaptrack, raw_stacks_are_addresses_in_the_modules_of_their_time) {
  const Whole got = read_text(
      "v 10400 3\nx d /usr/bin/game\nX game\nI 1000 5e2990\nm 1 -\nm 1 x 1000 0 800 1000 800\nm 9 /lib/a.so 9000 0 "
      "500\n"
      "t 1123 0\nt 9011 1\n+ 20 2 100\nm 1 -\nm 1 x 1000 0 800 1000 800\nt 9021 1\n+ 10 3 300\n- 100\n");
  ASSERT_EQ(got.events.size(), 3U);
  EXPECT_EQ(stack_of(got, 0), "/lib/a.so+16 < /usr/bin/game+290");
  EXPECT_EQ(stack_of(got, 1), "?+36896 < /usr/bin/game+290");
  EXPECT_EQ(got.events[2].site, no_site);
  EXPECT_EQ(got.stacks->modules().size(), 2U);
}

TEST_F(Heaptrack, interpreted_stacks_have_names_the_innermost_inlined_function_first) {
  const Whole got = read_text(opening +
                              "s d /usr/bin/game\ns 4 main\ns 8 main.cpp\ns 5 inner\n"
                              "i 1124 1 4 3 5 2 3 c\nt 1 0\ni 2201 1\nt 2 1\na 20 2\n+ 0\n");
  ASSERT_EQ(got.events.size(), 1U);
  EXPECT_EQ(stack_of(got, 0), "/usr/bin/game+8704 < /usr/bin/game+4387 inner@main.cpp:5 main@main.cpp:12");
}

TEST_F(Heaptrack, a_stack_that_the_recording_does_not_hold_is_none_and_counted) {
  const Whole got = read_text(opening + "t 7f00 0\nt 7f10 5\n+ 5 2 10\n+ 5 1 20\n");
  EXPECT_EQ(got.events[0].site, no_site);
  EXPECT_EQ(got.events[1].site, 0U);
  ASSERT_EQ(got.notes.size(), 2U);
  EXPECT_EQ(got.notes[1].substr(0, 13), "1 allocations");
}

TEST_F(Heaptrack, arguments_with_line_ends_are_no_events) {
  const Whole got = read_text("v 10400 3\nX python3 -c a=1\n+ 5\n- def\nI 1000 5e2990\n+ 5 c 10\n");
  EXPECT_EQ(got.events.size(), 1U);
}

TEST_F(Heaptrack, what_it_missed_is_counted) {
  const Whole got = read_text(opening + "- 30\n+ 5 1 10\n+ 6 1 10\n- 10\n");
  ASSERT_EQ(got.events.size(), 4U);
  EXPECT_EQ(got.events[1].kind, Kind::free);
  ASSERT_EQ(got.notes.size(), 3U);
  EXPECT_EQ(got.notes[1].substr(0, 7), "1 frees");
  EXPECT_EQ(got.notes[2].substr(0, 8), "1 blocks");
}

TEST_F(Heaptrack, a_newer_file_version_is_refused) { expect_error("v 20000 9\n", "newer"); }
TEST_F(Heaptrack, an_unknown_line_names_itself) { expect_error(opening + "q 1\n", "line 4"); }
TEST_F(Heaptrack, an_index_nobody_described_names_its_line) { expect_error(opening + "+ 7\n", "line 4"); }
TEST_F(Heaptrack, a_size_that_no_process_can_address_names_its_line) {
  expect_error(opening + "a ffffffffffffffff 1\n", "line 4: it asks for 18446744073709551615 bytes");
  expect_error(opening + "+ 1000000000000 1 10\n", "line 4: it asks for 281474976710656 bytes");
}
TEST_F(Heaptrack, an_interpreted_free_of_nothing_names_its_line) { expect_error(opening + "a 1 1\n- 0\n", "line 5"); }

}  // namespace
}  // namespace blockyard::journal::testing
