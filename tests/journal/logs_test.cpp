// Logs of other tools become journals; what they lack is repaired by a rule that the journal names.
#include <gtest/gtest.h>

#include "journal/convert.hpp"
#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Logs : public OfText {
 protected:
  Outcome convert_text(const std::string& text, const std::string& to, const ConvertOptions& options = {}) {
    spill(folder_ / "a.txt", text);
    ConvertOptions over = options;
    over.overwrite = true;
    return convert(folder_ / "a.txt", folder_ / to, over, {});
  }
};

bool says(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(),
                     [&](const std::string& sentence) { return sentence.find(part) != std::string::npos; });
}

const std::string unreal_head = "Operation ResultPointer PointerIn SizeIn AlignmentIn\n";

TEST_F(Logs, unreal_calls_become_events_in_the_order_of_their_serials) {
  const Whole got = read_text(unreal_head +
                              "Malloc 4096 0 24 0\t# 1\nMalloc 8192 0 100 64\t# 2\nRealloc 12288 4096 48 0\t# 4\n"
                              "Malloc 16384 0 7 0\t# 3\nFree 0 8192 0 0\t# 5\nRealloc 0 12288 0 0\t# 6\n"
                              "Realloc 20480 0 9 0\t# 7\nFree 0 0 0 0\t# 8\n\nGracefully closed\n");
  EXPECT_EQ(as_words(got.events), "a24 m64:100 a7 r0>3:48 f1 f3 a9");
  EXPECT_FALSE(got.header.paced);
  EXPECT_FALSE(got.header.threads_known);
  EXPECT_FALSE(got.header.cut_at_end);
  EXPECT_EQ(got.events[3].time_ns, 4U);
  EXPECT_TRUE(says(got.header.repairs, "no times"));
  EXPECT_TRUE(says(got.header.repairs, "no threads"));
  EXPECT_TRUE(says(got.header.repairs, "1 line stood behind a later number"));
}

TEST_F(Logs, an_unreal_free_that_was_written_late_comes_before_the_address_is_given_again) {
  const Whole got = read_text(unreal_head +
                              "Malloc 4096 0 24 0\t# 1\nMalloc 4096 0 48 0\t# 2\nFree 0 4096 0 0\t# 3\n"
                              "Free 0 4096 0 0\t# 4\n\nGracefully closed\n");
  EXPECT_EQ(as_words(got.events), "a24 f0 a48 f1");
  EXPECT_TRUE(says(got.header.repairs, "1 free stood behind"));
}

TEST_F(Logs, a_free_between_two_allocations_of_an_address_stays_with_the_first_of_them) {
  const Whole got = read_text(unreal_head +
                              "Malloc 4096 0 24 0\t# 1\nMalloc 4096 0 48 0\t# 2\nFree 0 4096 0 0\t# 3\n"
                              "Malloc 4096 0 72 0\t# 4\n\nGracefully closed\n");
  EXPECT_EQ(as_words(got.events), "a24 f0 a48 f1 a72");
  EXPECT_TRUE(says(got.header.repairs, "1 block was freed where"));
}

TEST_F(Logs, an_unreal_log_of_a_crash_says_that_blocks_are_no_leaks) {
  const Whole got = read_text(unreal_head + "Malloc 4096 0 24 0\t# 1\nMalloc 8192 0 24 0\t# 2\nFree 0 81");
  EXPECT_EQ(as_words(got.events), "a24 a24");
  EXPECT_TRUE(got.header.cut_at_end);
  EXPECT_TRUE(says(got.notes, "cut off"));
  EXPECT_TRUE(says(got.notes, "was not closed"));
}

TEST_F(Logs, aosp_calls_keep_threads_and_an_id_that_is_given_again_is_another_thread) {
  const Whole got = read_text(
      "7: malloc 0x1000 24\n8: calloc 0x2000 3 5\n7: memalign 0x3000 64 10\n8: realloc 0x4000 0x1000 48\n"
      "8: free 0x2000\n8: thread_done 0x0\n8: realloc 0x2000 0x0 9\n7: free 0x0\n7: malloc 0x0 99\n7: free 0x3000\n");
  EXPECT_EQ(as_words(got.events), "a24 z15 m64:10 r0>3:48 f1 a9 f2");
  ASSERT_EQ(got.header.threads.size(), 3U);
  EXPECT_EQ(got.events[3].thread, 1U);
  EXPECT_EQ(got.events[5].thread, 2U);
  EXPECT_TRUE(got.header.threads_known);
  EXPECT_FALSE(got.header.paced);
  EXPECT_TRUE(says(got.header.repairs, "1 call that failed was left out"));
}

TEST_F(Logs, aosp_times_give_the_pace_and_the_durations_of_reallocs) {
  const Whole got = read_text(
      "7: malloc 0x1000 24 1000100 1000150\n8: malloc 0x2000 5 1000090 1000120\n"
      "7: realloc 0x3000 0x1000 48 1000300 1000390\n7: thread_done 0x0\n");
  EXPECT_EQ(as_words(got.events), "a5 a24 r1>2:48");
  EXPECT_TRUE(got.header.paced);
  EXPECT_EQ(got.events[0].time_ns, 1U);
  EXPECT_EQ(got.events[1].time_ns, 11U);
  EXPECT_EQ(got.events[2].time_ns, 211U);
  EXPECT_EQ(got.events[2].duration_ns, 90U);
  EXPECT_EQ(got.header.repairs,
            std::vector<std::string>{"1 line stood behind a later time and was put in order, within "
                                     "262,144 lines"});
}

TEST_F(Logs, logalloc_calls_become_events_with_or_without_threads) {
  const std::string calls[] = {
      "malloc(24)=0x1000",          "calloc(3,5)=0x2000", "memalign(64,10)=0x3000", "posix_memalign(128,3)=0x5000",
      "realloc(0x1000,48)=0x4000",  "free(0x2000)",       "realloc(0x0,9)=0x2000",  "free(0x0)",
      "jemalloc_free_dirty_pages()"};
  for (const bool threads : {true, false}) {
    std::string text;
    for (const auto& call : calls) text += (threads ? "12 34 " : "12 ") + call + "\n";
    const Whole got = read_text(text);
    EXPECT_EQ(as_words(got.events), "a24 z15 m64:10 m128:3 r0>4:48 f1 a9");
    EXPECT_EQ(got.header.threads_known, threads);
    EXPECT_EQ(got.header.threads[0].id, threads ? 34U : 1U);
  }
}

TEST_F(Logs, a_munged_logalloc_log_has_numbers_for_pointers_that_are_used_again) {
  const Whole got =
      read_text("1 1 malloc(24)=#1\n1 2 free(#1)\n1 1 malloc(8)=#1\n1 1 realloc(#1,80)=#2\n1 1 free(#2)\n");
  EXPECT_EQ(as_words(got.events), "a24 f0 a8 r1>2:80 f2");
  EXPECT_FALSE(got.header.has_addresses);
}

TEST_F(Logs, lines_of_other_processes_in_a_logalloc_log_are_left_out_and_counted) {
  const Whole got = read_text("1 1 malloc(24)=0x10\n2 2 malloc(9)=0x10\n2 2 free(0x10)\n1 1 free(0x10)\n");
  EXPECT_EQ(as_words(got.events), "a24 f0");
  EXPECT_TRUE(says(got.header.repairs, "2 lines of other processes"));
}

TEST_F(Logs, mtrace_calls_become_events_with_their_caller) {
  const Whole got = read_text(
      "= Start\n@ ./my [p]:[0x11ce] + 0x1000 0x2a\n@ ./my [p]:(main+0x1d)[0x11e1] + 0x2000 0\n"
      "@ ./my [p]:[0x11ce] < 0x1000\n@ ./my [p]:[0x11ce] > 0x3000 0x186a0\n@ [0x99] - 0x2000\n+ (nil) "
      "0xfffffffffffffc18\n"
      "@ ./my [p]:[0x12b5] ! 0x3000 0xffffffffffffdcd8\n@ ./my [p]:[0x11cf] - 0x77\n= End\n");
  EXPECT_EQ(as_words(got.events), "a42 a0 r0>2:100000 f1");
  ASSERT_EQ(got.stacks->counts().nodes, 5U);
  EXPECT_EQ(got.events[0].site, got.events[2].site);
  EXPECT_EQ(read_text("= Start\n@ a:[0x1] + 0x10 0x2\n+ 0x20 0x2\n").events[1].site, no_site);
  EXPECT_EQ(got.stacks->modules()[0].path, "./my [p]");
  EXPECT_EQ(got.stacks->frames()[0].address, 0x11CDU);
  EXPECT_EQ(got.stacks->text(got.stacks->names(1)[0].name), "main");
  EXPECT_TRUE(says(got.header.repairs, "2 calls that failed"));
  EXPECT_TRUE(says(got.header.repairs, "1 free or realloc names a block whose allocation is missing"));
}

TEST_F(Logs, what_comes_before_a_torn_realloc_of_mtrace_is_kept) {
  const Whole got = read_text("= Start\n@ a:[0x1] + 0x1000 0x2a\n@ a:[0x1] < 0x1000\n");
  EXPECT_EQ(as_words(got.events), "a42");
  EXPECT_TRUE(got.header.cut_at_end);
}

TEST_F(Logs, what_cannot_be_read_names_its_line) {
  expect_error(unreal_head + "Malloc 1 0 24 0\t# 1\nCalloc 1 0 24 0\t# 2\n", "a.txt, line 3: Malloc, Realloc or Free");
  expect_error(unreal_head + "Malloc 16 0 x 0\t# 1\n", "line 2: the size (a decimal number) was expected");
  expect_error("7: malloc 0x10 24\n7: strdup 0x20\n", "line 2: malloc, calloc, memalign, realloc, free or thread_done");
  expect_error("7: malloc 0x10 24\n7: free 0x10 5 6\n", "line 2: some events have times and some have none");
  expect_error("7: malloc 0x10 99999999999999999\n", "line 1: it asks for 99999999999999999 bytes");
  expect_error("1 2 malloc(24)=0x10\n1 2 malloc(24)\n", "line 2: ')=' was expected");
  expect_error("1 2 malloc(24)=0x10\n1 2 strdup(24)=0x10\n", "line 2: malloc, calloc, realloc");
  expect_error("= Start\n@ a:[0x1] + 0x10 0x2\n@ a:[0x1] > 0x20 0x2\n", "line 3: the first line of the realloc");
  expect_error("= Start\n@ nobody + 0x10 0x2\n", "line 2: the caller");
}

TEST_F(Logs, a_log_without_events_and_a_file_of_no_form_are_refused) {
  expect_error("= Start\n= End\n", "holds no event");
  expect_error("hello\n", "begins neither as a .byj, a heaptrack recording");
}

TEST_F(Logs, the_form_can_be_named_where_the_beginning_is_missing) {
  const std::string text = "+ 0x1000 0x2a\n- 0x1000\n";
  EXPECT_THROW(convert_text(text, "b.byj"), Error);
  EXPECT_EQ(convert_text(text, "b.byj", {.from = "mtrace"}).events, 2U);
}

TEST_F(Logs, repairs_stay_in_the_header_through_byj_and_text) {
  convert_text("= Start\n@ a:[0x1] + 0x1000 0x2a\n@ a:[0x1] - 0x77\n", "b.byj");
  const Whole got = read(folder_ / "b.byj");
  ASSERT_EQ(got.header.repairs.size(), 4U);
  EXPECT_FALSE(got.header.threads_known);
  convert(folder_ / "b.byj", folder_ / "b.txt", {}, {});
  convert(folder_ / "b.txt", folder_ / "c.byj", {}, {});
  const Whole back = read(folder_ / "c.byj");
  expect_same(got, back);
  EXPECT_EQ(got.header.repairs, back.header.repairs);
  EXPECT_FALSE(back.header.threads_known);
}

TEST_F(Logs, a_pace_that_somebody_chose_is_even_marked_and_in_the_header) {
  const std::string text = "7: malloc 0x10 24\n7: malloc 0x20 24\n7: free 0x10\n7: free 0x20\n";
  convert_text(text, "b.byj", {.pace = Pace{.events_per_s = 1000}});
  const Whole even = read(folder_ / "b.byj");
  EXPECT_EQ(as_words(even.events), "a24 a24 f0 f1");
  EXPECT_EQ(even.events[3].time_ns, 4'000'000U);
  EXPECT_TRUE(even.header.paced);
  EXPECT_TRUE(says(even.header.repairs, "the pace is made up: an event every 1000000 ns"));
  const Outcome outcome = convert_text(text, "b.byj", {.pace = Pace{.events_a_frame = 2}});
  EXPECT_EQ(outcome.events, 6U);
  EXPECT_TRUE(says(outcome.notes, "a frame of 2 events"));
  const Whole framed = read(folder_ / "b.byj");
  EXPECT_EQ(as_words(framed.events), "a24 a24 | f0 f1 |");
  EXPECT_EQ(framed.events[5].time_ns, 33'333'333U);
}

TEST_F(Logs, a_journal_with_times_of_its_own_gets_no_other_pace) {
  EXPECT_THROW(convert_text("a 24 10 7 1000\n", "b.byj", {.pace = Pace{.events_per_s = 1000}}), Error);
}

TEST_F(Logs, aosp_written_and_read_again_has_the_same_calls) {
  for (const bool paced : {true, false}) {
    Whole written = sample(5000, 7, true);
    written.header.paced = paced;
    const std::string name = folder_ / (paced ? "paced.byj" : "unpaced.byj");
    write(name, written);
    ConvertOptions to;
    to.to = OutputForm::aosp;
    to.overwrite = true;
    const Outcome outcome = convert(name, folder_ / "b.txt.zst", to, {});
    EXPECT_TRUE(says(outcome.notes, "marks of frames and phases were left out"));
    const Whole back = read(folder_ / "b.txt.zst");
    EXPECT_EQ(back.header.paced, paced);
    std::vector<Event> calls;
    for (const Event& event : written.events) {
      if (gives_block(event.kind) || takes_block(event.kind)) calls.push_back(event);
    }
    ASSERT_EQ(back.events.size(), calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
      ASSERT_EQ(back.events[i].kind, calls[i].kind);
      ASSERT_EQ(back.events[i].size, calls[i].size);
      ASSERT_EQ(back.events[i].alignment, calls[i].alignment);
      ASSERT_EQ(ended_block(back.events[i]), ended_block(calls[i]));
      ASSERT_EQ(back.header.threads[back.events[i].thread].id, written.header.threads[calls[i].thread].id);
      if (!paced) continue;
      ASSERT_EQ(back.events[i].duration_ns, calls[i].duration_ns);
      ASSERT_EQ(back.events[i].time_ns - back.events[0].time_ns, calls[i].time_ns - calls[0].time_ns);
    }
  }
}

}  // namespace
}  // namespace blockyard::journal::testing
