// The study's text form: what is read, what is put right, and which line is named when it can't be.
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Text : public OfText {};

/// Empty where there are none or several.
std::string only_note(const Whole& got) { return got.notes.size() == 1 ? got.notes[0] : ""; }

TEST_F(Text, pointers_become_dense_blocks_and_threads_dense_indices) {
  const Whole got = read_text("a 16 1000 777 5\na 32 2000 999 6\nf 1000 999 7\na 48 1000 777 8\nf 1000 777 9\n");
  ASSERT_EQ(as_words(got.events), "a16 a32 f0 a48 f2");
  EXPECT_EQ(got.events[1].thread, 1U);
  EXPECT_EQ(got.events[2].thread, 1U);
  EXPECT_EQ(got.events[4].time_ns, 9U);
  ASSERT_EQ(got.header.threads.size(), 2U);
  EXPECT_EQ(got.header.threads[1].id, 999U);
}

TEST_F(Text, reads_carriage_returns_prefixes_either_case_blank_lines_and_comments) {
  const Whole got = read_text("# made by hand\r\na 16 0xAbCd 7 5\r\n\r\n# half time\nf 0XaBcD\t7  6 \r\n");
  ASSERT_EQ(got.events.size(), 2U);
  EXPECT_EQ(got.events[0].address, 0xABCDU);
  EXPECT_EQ(got.events[1].block, 0U);
}

TEST_F(Text, needs_no_newline_at_the_end) { EXPECT_EQ(read_text("a 16 10 7 5\nf 10 7 6").events.size(), 2U); }

TEST_F(Text, a_size_that_no_process_can_address_names_its_line) {
  EXPECT_EQ(read_text("a 281474976710655 10 7 5\n").events.at(0).size, most_block_bytes);
  expect_error("a 16 10 7 5\na 281474976710656 20 7 6\n",
               "line 2: it asks for 281474976710656 bytes, more than a process");
  expect_error("a 18446744073709551615 10 7 5\n", "line 1: it asks for 18446744073709551615 bytes");
}

TEST_F(Text, comments_of_others_say_nothing) {
  const Whole got = read_text("# realloc is written as f and a\n# zeroed\n# thread none\na 16 10 7 5\n");
  EXPECT_EQ(got.events.at(0).kind, Kind::allocate);
}

TEST_F(Text, leading_allocations_at_time_zero_are_the_preamble) {
  const Whole got = read_text("a 1 10 7 0\na 2 20 8 0\nf 10 7 0\na 3 30 7 0\n");
  EXPECT_EQ(got.header.preamble_events, 2U);
}

TEST_F(Text, a_journal_that_starts_behind_time_zero_has_no_preamble) {
  EXPECT_EQ(read_text("a 1 10 7 1\n").header.preamble_events, 0U);
}

TEST_F(Text, reads_zst_and_gz) {
  const std::string text = "a 16 10 7 5\nf 10 7 6\n";
  const auto pack = [](const std::string& plain) {
    std::string packed(ZSTD_compressBound(plain.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
    return packed;
  };
  const std::string packed = pack(text);
  spill(folder_ / "a.zst", packed);
  EXPECT_EQ(read(folder_ / "a.zst").events.size(), 2U);
  spill(folder_ / "b.zst", pack(text.substr(0, 15)) + pack(text.substr(15)));  // frames may follow one another
  EXPECT_EQ(read(folder_ / "b.zst").events.size(), 2U);
  spill(folder_ / "c.zst", packed.substr(0, packed.size() - 3));
  EXPECT_NE(error_of(folder_ / "c.zst").find("cut short"), std::string::npos);
  const gzFile file = gzopen((folder_ / "a.gz").c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_EQ(read(folder_ / "a.gz").events.size(), 2U);
  const std::string zipped = slurp(folder_ / "a.gz");
  spill(folder_ / "c.gz", zipped.substr(0, zipped.size() - 3));
  EXPECT_NE(error_of(folder_ / "c.gz").find("cut short"), std::string::npos);
}

TEST_F(Text, of_a_compressed_stream_that_is_cut_off_what_comes_before_is_read) {
  constexpr std::size_t events = 100'000;
  std::string text;
  for (std::size_t i = 0; i < events; ++i) {
    text += "a 16 " + std::to_string(1000 + 7919 * i) + " 7 " + std::to_string(5 + 3 * i) + "\n";
  }
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  const gzFile file = gzopen((folder_ / "a.gz").c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  for (const std::string& whole : {packed, slurp(folder_ / "a.gz")}) {
    spill(folder_ / "cut", whole.substr(0, whole.size() / 2));
    const Whole got = read(folder_ / "cut");
    EXPECT_GT(got.events.size(), events / 4);
    EXPECT_LT(got.events.size(), events * 3 / 4);
    EXPECT_EQ(only_note(got), "its compressed stream is cut off, and the events behind that are missing");
    EXPECT_TRUE(got.header.cut_at_end);
  }
}

TEST_F(Text, a_time_that_goes_back_between_threads_is_sorted_and_counted) {
  const Whole got = read_text("a 1 10 7 5\na 2 20 8 3\nf 20 8 4\nf 10 7 6\n");
  EXPECT_EQ(as_words(got.events), "a2 f0 a1 f1");
  EXPECT_EQ(only_note(got).substr(0, 7), "2 lines");
}

TEST_F(Text, a_free_that_precedes_another_threads_allocation_waits_for_it) {
  const Whole got = read_text("f 10 8 5\na 1 10 7 6\na 1 20 7 7\n");
  EXPECT_EQ(as_words(got.events), "a1 f0 a1");
  EXPECT_EQ(only_note(got).substr(0, 12), "1 allocation");
}

TEST_F(Text, an_address_given_again_before_another_threads_free_line_is_put_right) {
  const Whole got = read_text("a 1 10 7 5\na 2 10 8 6\nf 10 7 7\nf 10 8 8\n");
  EXPECT_EQ(as_words(got.events), "a1 f0 a2 f1");
  EXPECT_EQ(only_note(got).substr(0, 6), "1 free");
}

TEST_F(Text, order_is_put_right_across_the_whole_window_and_no_further) {
  const auto filled = [](std::size_t lines) {
    std::string text = "f 10 8 1\n";
    for (std::size_t i = 0; i < lines; ++i) {
      text += "a 1 " + std::to_string(1000 + i) + " 7 " + std::to_string(2 + i) + "\n";
    }
    return text + "a 1 10 7 999999\n";
  };
  EXPECT_EQ(read_text(filled(16'382)).notes.size(), 1U);
  expect_error(filled(16'383), "line 1 (event 0): a free of nothing");
}

TEST_F(Text, a_time_that_goes_back_beyond_the_window_names_its_line) {
  std::string text;
  for (int i = 0; i < 600'000; ++i) {
    text += "a 1 " + std::to_string(1000 + i) + " 7 " + std::to_string(100 + i) + "\n";
  }
  expect_error(text + "a 1 10 8 50\n", "line 600001");
}

TEST_F(Text, a_line_that_its_thread_writes_long_after_its_time_is_put_in_order) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) {
    if (i == 350'000) text += "f 1000 8 100200\n";  // the processor was lost for a quarter of a million lines
    text += "a 1 " + std::to_string(1000 + i) + " 7 " + std::to_string(100 + i) + "\n";
  }
  const Whole got = read_text(text);
  ASSERT_EQ(got.events.size(), 400'001U);
  EXPECT_EQ(got.events[100'101].kind, Kind::free);
  EXPECT_EQ(got.events[100'101].time_ns, 100'200U);
  EXPECT_EQ(only_note(got), "1 line stood behind a later time and was put in order, within 262,144 lines");
}

TEST_F(Text, of_an_end_that_is_cut_off_what_comes_before_is_read) {
  const std::string whole = "a 16 10 7 5\nf 10 7 100\n";
  for (const char* cut : {"a", "f 1", "a 1", "a 16 20", "a 16 20 7", "f 20 7 ", "a 16 20 7 1", "#", "\x01"}) {
    const Whole got = read_text(whole + cut);
    ASSERT_EQ(got.events.size(), 2U) << cut;
    if (cut[0] == '#') continue;  // a comment
    EXPECT_EQ(only_note(got), "its end is cut off in the midst of an event, which was left out") << cut;
    EXPECT_TRUE(got.header.cut_at_end);
    EXPECT_EQ(got.header.threads.size(), 1U);
  }
  const std::string head = "# blockyard journal text 1\n# name bullet\n";
  EXPECT_EQ(read_text(head + whole + "# tag 1\n").events.size(), 2U);
  EXPECT_EQ(read_text(head + whole + "# realloc 5\nf 10 7 200\n").events.size(), 2U);
}

TEST_F(Text, what_cannot_be_read_says_why_and_names_its_line) {
  expect_error("a 1 10 7 5\nf 20 7 6\n", "line 2 (event 1): a free of nothing");
  // A thread's own later allocation does not explain its free.
  expect_error("f 10 7 5\na 1 10 7 6\n", "line 1 (event 0): a free of nothing");
  expect_error("a 1 10 7 5\na 1 10 7 6\nf 10 7 7\n", "line 2 (event 1): a block is allocated twice");
  expect_error("a 1 10 7 5\nb 1 10 7 6\n", "line 2: a line begins with");
  expect_error("a 1 10 7\n", "line 1: a blank was expected before the time");
  expect_error("a -1 10 7 5\n", "line 1: the size (a decimal number)");
  expect_error("a 1 xyz 7 5\n", "line 1: the pointer (a hexadecimal number)");
  expect_error("a 1 0 7 5\n", "line 1: the pointer is 0");
  expect_error("a 99999999999999999999 10 7 5\n", "the size is beyond 64 bits");
  expect_error("a 1 11112222333344445 7 5\n", "the pointer is beyond 64 bits");
  expect_error("a 1 10 7 5 6\n", "the end of the line was expected");
  expect_error("", "is empty");
  expect_error("\x7F\x45LF and so on", "is no journal");
}

TEST_F(Text, a_line_without_end_says_so) { expect_error("a " + std::string(3'000'000, '1'), "longer than 1 MiB"); }
TEST_F(Text, a_broken_call_stack_names_its_line) {
  const std::string head = "# blockyard journal text 1\n";
  expect_error(head + "# site 0\na 1 10 7 5\n", "line 2: the call stack has no '# node' line");
  expect_error(head + "# tag 4\na 1 10 7 5\n", "line 2: the tag has no '# name' line");
  expect_error(head + "# address 3 10\n", "line 2: stack frame 0 names module 3, which does not exist");
  expect_error(head + "# address - 1G\n", "line 2: a hexadecimal number was expected in '# address'");
  expect_error(head + "# address - 10\n# address - 10\n", "line 3: this address was there before");
  expect_error(head + "# node - 0\n", "line 2: call stack 0 names stack frame 0, which does not exist");
  expect_error(head + "# address - 10\n# node 5 0\n", "line 3: call stack 0 continues call stack 5");
  expect_error(head + "# address - 10\n# node - 0\n# node - 0\n", "line 4: this call stack was there before");
  expect_error(head + "# module 10 20 10 0 xyz game\n", "line 2: module 0 has a build-id that is no hexadecimal");
  expect_error(head + "# module 20 10 10 0 - game\n", "line 2: module 0 ends before it begins");
  expect_error(head + "# unmapped 0 5\n", "line 2: module 0 is unmapped, but does not exist");
  expect_error(head + "# function 0 1 main\n", "line 2: the function has no '# address' line");
  expect_error(head + "# file main.cpp\n", "line 2: the '# function' line that the file belongs to is missing");
}

TEST_F(Text, a_large_file_that_is_parsed_ahead_gives_the_same_error_with_its_line) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "a 1 " + std::to_string(1000 + i) + " 7 " + std::to_string(100 + i) + "\n";
  ASSERT_GT(text.size(), 1U << 20);
  expect_error(text + "oops\n", "line 100001");
}

}  // namespace
}  // namespace blockyard::journal::testing
