// Conversions keep what they promise to keep; cut keeps what lives.
#include <gtest/gtest.h>

#include "journal/check.hpp"
#include "journal/convert.hpp"
#include "journal/cut.hpp"
#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

class Convert : public ::testing::Test {
 protected:
  Outcome convert_to(const std::string& from, const std::string& to, const ConvertOptions& options = {}) {
    return convert(folder_ / from, folder_ / to, options, {});
  }
  Outcome cut_to(const std::string& from, const std::string& to, std::uint64_t from_ns, std::uint64_t to_ns) {
    return cut(folder_ / from, folder_ / to, {.from_ns = from_ns, .to_ns = to_ns}, {});
  }
  Whole through_text(const Whole& written) {
    write(folder_ / "a.byj", written);
    convert_to("a.byj", "a.txt");
    convert_to("a.txt", "b.byj");
    return read(folder_ / "b.byj");
  }
  Folder folder_;
};

TEST_F(Convert, byj_to_text_and_back_loses_nothing) {
  for (const bool addresses : {true, false}) {
    Whole written = sample(100'000, 3, addresses);
    written.header.paced = addresses;
    const std::string name = addresses ? "kept" : "made-up";
    write(folder_ / (name + ".byj"), written);
    convert_to(name + ".byj", name + ".txt");
    convert_to(name + ".txt", name + "-back.byj");
    expect_same(written, read(folder_ / (name + "-back.byj")));
  }
}

TEST_F(Convert, call_stacks_survive_the_text_form) {
  const Whole written = sample_with_stacks(10'000);
  expect_same(written, through_text(written));
  expect_same(written, read(folder_ / "a.txt"));
  convert_to("b.byj", "b.txt");
  EXPECT_EQ(slurp(folder_ / "a.txt"), slurp(folder_ / "b.txt"));
}

TEST_F(Convert, anonymous_leaves_no_text_and_keeps_the_structure) {
  const Whole written = sample_with_stacks(2000);
  write(folder_ / "a.byj", written);
  convert_to("a.byj", "b.byj", {.anonymous = true});
  convert_to("b.byj", "b.txt");
  const std::string text = slurp(folder_ / "b.txt");
  for (const std::string secret : {"sample", "--level", "main", "worker", "loading", "physics", "broadphase",
                                   "game::", "src/", "cpp", "libplug", "0123456789abcdef"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  }
  const Whole got = read(folder_ / "b.byj");
  ASSERT_EQ(got.events.size(), written.events.size());
  for (std::size_t i = 0; i < got.events.size(); ++i) expect_same(written.events[i], got.events[i], i);
  EXPECT_EQ(got.stacks->counts(), written.stacks->counts());
  EXPECT_EQ(got.header.names, (std::vector<std::string>{"", "name-3", "name-4", "name-5", "name-5/name-6"}));
  const Stacks& before = *written.stacks;
  const Stacks& after = *got.stacks;
  for (std::uint32_t i = 0; i < before.frames().size(); ++i) {
    ASSERT_EQ(before.frames()[i].address, after.frames()[i].address);
    ASSERT_EQ(before.names(i).size(), after.names(i).size());
    for (std::uint32_t k = 0; k < i && k < 50; ++k) {
      if (before.names(i).empty() || before.names(k).empty()) continue;
      EXPECT_EQ(before.names(i)[0].name == before.names(k)[0].name,
                after.text(after.names(i)[0].name) == after.text(after.names(k)[0].name));
    }
  }
}

TEST_F(Convert, cut_keeps_only_the_call_stacks_that_its_events_need) {
  const Whole written = sample_with_stacks(20'000);
  write(folder_ / "a.byj", written);
  const std::uint64_t from = written.events[10'000].time_ns;
  cut_to("a.byj", "b.byj", from, written.events[10'050].time_ns);
  const Whole got = read(folder_ / "b.byj");
  const Stacks& before = *written.stacks;
  const Stacks& after = *got.stacks;
  after.check();
  EXPECT_LT(after.counts().nodes, before.counts().nodes);
  EXPECT_GT(after.named_frames(), 0U);
  const auto of_stretch = got.events.begin() + static_cast<std::ptrdiff_t>(got.header.preamble_events);
  for (auto event = of_stretch; event != got.events.end(); ++event) {
    const Event& original = written.events[10'000 + static_cast<std::size_t>(event - of_stretch)];
    ASSERT_EQ(event->site == no_site, original.site == no_site);
    std::uint32_t a = original.site;
    std::uint32_t b = event->site;
    while (a != no_node && b != no_node) {
      const Frame& frame_before = before.frames()[before.nodes()[a].frame];
      const Frame& frame_after = after.frames()[after.nodes()[b].frame];
      ASSERT_EQ(frame_before.address, frame_after.address);
      if (frame_before.module < before.modules().size()) {
        ASSERT_EQ(before.modules()[frame_before.module].path, after.modules()[frame_after.module].path);
      } else {
        ASSERT_EQ(frame_before.module, frame_after.module);
      }
      const auto names_before = before.names(before.nodes()[a].frame);
      const auto names_after = after.names(after.nodes()[b].frame);
      ASSERT_EQ(names_before.size(), names_after.size());
      if (!names_before.empty()) {
        ASSERT_EQ(before.text(names_before[0].name), after.text(names_after[0].name));
      }
      a = before.nodes()[a].parent;
      b = after.nodes()[b].parent;
    }
    ASSERT_EQ(a, b);
  }
}

TEST_F(Convert, cut_saves_all_events_of_a_journal_whose_call_stacks_are_damaged) {
  const Whole written = sample_with_stacks(1000);
  write(folder_ / "a.byj", written);
  const std::string bytes = slurp(folder_ / "a.byj");
  for (const std::string section : {"STAK", "SYMS"}) {
    std::string damaged = bytes;
    damaged[bytes.find(section) + 100] ^= 1;
    spill(folder_ / "damaged.byj", damaged);
    const std::string refused = error_of(folder_ / "damaged.byj");
    EXPECT_NE(refused.find("`blockyard cut` saves the events"), std::string::npos) << refused;
    try {
      cut(folder_ / "damaged.byj", folder_ / (section + ".byj"), {}, {});
      ADD_FAILURE() << "nothing was said about the damage";
    } catch (const Error& error) {
      const char* lost = section == "STAK" ? "holds all events, without the call stacks that are lost"
                                           : "holds all events and call stacks, without the names that are lost";
      EXPECT_NE(std::string(error.what()).find(lost), std::string::npos) << error.what();
    }
    const Whole saved = read(folder_ / (section + ".byj"));
    ASSERT_EQ(saved.events.size(), written.events.size());
    EXPECT_EQ(saved.stacks->empty(), section == "STAK");
    EXPECT_FALSE(saved.stacks->has_names());
  }
}

TEST_F(Convert, a_preamble_survives_the_text_form) {
  Whole written = sample(0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    written.events.push_back({.time_ns = 0, .size = i, .block = i, .address = 16 * i + 16});
  }
  written.header.preamble_events = 4;
  EXPECT_EQ(through_text(written).header.preamble_events, 4U);
}

TEST_F(Convert, threads_that_share_a_kernel_id_stay_apart) {
  Whole written = sample(1000);
  written.header.threads[1].id = written.header.threads[0].id;
  expect_same(written, through_text(written));
}

TEST_F(Convert, through_zst_and_gz_as_their_names_say) {
  const Whole written = sample(1000);
  write(folder_ / "a.byj", written);
  for (const std::string name : {"a.txt.zst", "a.txt.gz"}) {
    convert_to("a.byj", name);
    convert_to(name, name + ".back.byj");
    expect_same(written, read(folder_ / (name + ".back.byj")));
  }
  EXPECT_EQ(slurp(folder_ / "a.txt.zst").substr(0, 4), "\x28\xB5\x2F\xFD");
  EXPECT_EQ(slurp(folder_ / "a.txt.gz").substr(0, 2), "\x1F\x8B");
}

TEST_F(Convert, text_with_addresses_comes_back_as_the_same_lines) {
  const std::string text =
      "a 16 00000000000000A0 7 0\na 8 00007FFFDEADBEE0 9 0\nf 00000000000000A0 9 100\na 0 00000000000000A0 7 101\n";
  spill(folder_ / "a.txt", text);
  convert_to("a.txt", "a.byj", {.addresses = true});
  convert_to("a.byj", "b.txt", {.plain = true});
  EXPECT_EQ(slurp(folder_ / "b.txt"), text);
}

TEST_F(Convert, text_drops_its_addresses_unless_asked) {
  spill(folder_ / "a.txt", "a 16 00000000000000A0 7 5\n");
  convert_to("a.txt", "a.byj");
  EXPECT_FALSE(read(folder_ / "a.byj").header.has_addresses);
}

TEST_F(Convert, plain_text_has_nothing_but_the_studys_lines) {
  write(folder_ / "a.byj", sample(1000));
  convert_to("a.byj", "a.txt", {.plain = true});
  const std::string text = slurp(folder_ / "a.txt");
  EXPECT_EQ(text.find('#'), std::string::npos);
  EXPECT_EQ(error_of(folder_ / "a.txt"), "");
}

TEST_F(Convert, joins_a_free_and_an_allocation_of_the_same_instant_and_thread_only_when_asked) {
  spill(folder_ / "a.txt",
        "a 1 A0 7 5\na 1 B0 7 5\nf A0 7 6\na 2 C0 7 6\nf B0 7 7\na 2 A0 8 7\nf C0 7 8\na 3 B0 7 9\nf B0 7 10\n");
  convert_to("a.txt", "plain.byj");
  EXPECT_EQ(read(folder_ / "plain.byj").events.size(), 9U);
  const Outcome outcome = convert_to("a.txt", "joined.byj", {.join_realloc = true});
  EXPECT_EQ(outcome.joined, 1U);
  const Whole got = read(folder_ / "joined.byj");
  EXPECT_EQ(as_words(got.events), "a1 a1 r0>2:2 f1 a2 f2 a3 f4");
}

TEST_F(Convert, leaves_nothing_behind_when_the_input_is_bad) {
  spill(folder_ / "a.txt", "a 1 A0 7 5\nnonsense\n");
  EXPECT_THROW(convert_to("a.txt", "a.byj"), Error);
  EXPECT_EQ(folder_.files(), 1U);
}

TEST_F(Convert, cut_restores_what_lives_at_its_start_as_preamble) {
  spill(folder_ / "a.txt", "a 1 A0 7 10\na 2 B0 7 20\nf A0 7 30\na 3 C0 9 100\nf B0 9 110\na 4 D0 7 200\n");
  const Outcome outcome = cut_to("a.txt", "b.byj", 100, 200);
  EXPECT_EQ(outcome.preamble_events, 1U);
  const Whole got = read(folder_ / "b.byj");
  ASSERT_EQ(as_words(got.events), "a2 a3 f0");
  EXPECT_EQ(got.header.preamble_events, 1U);
  EXPECT_TRUE(got.header.cut_at_end);
  EXPECT_EQ(got.events[0].time_ns, 0U);
  EXPECT_EQ(got.events[1].time_ns, 0U);
  EXPECT_EQ(got.events[2].time_ns, 10U);
}

TEST_F(Convert, cut_to_the_end_keeps_an_event_at_the_last_time_there_is) {
  spill(folder_ / "a.txt", "a 1 A0 7 5\na 2 B0 7 18446744073709551615\n");
  const Outcome outcome = cut(folder_ / "a.txt", folder_ / "b.byj", {.from_ns = 5}, {});
  EXPECT_EQ(outcome.events, 2U);
  EXPECT_FALSE(read(folder_ / "b.byj").header.cut_at_end);
}

TEST_F(Convert, stretches_side_by_side_hold_every_event_once) {
  const Whole written = sample(50'000, 4);
  write(folder_ / "a.byj", written);
  const std::uint64_t middle = written.events[25'000].time_ns;
  cut_to("a.byj", "b.byj", 0, middle);
  cut_to("a.byj", "c.byj", middle, ~std::uint64_t{0});
  const Whole first = read(folder_ / "b.byj");
  const Whole second = read(folder_ / "c.byj");
  EXPECT_EQ(first.events.size() + second.events.size() - second.header.preamble_events, written.events.size());
  EXPECT_EQ(second.header.preamble_events, check(folder_ / "b.byj", {}).live_at_end);
  EXPECT_NO_THROW(check(folder_ / "c.byj", {}));
  EXPECT_EQ(check(folder_ / "c.byj", {}).live_at_end, check(folder_ / "a.byj", {}).live_at_end);
}

TEST_F(Convert, cut_saves_what_is_whole_of_a_file_that_was_cut_short) {
  write(folder_ / "a.byj", sample(200'000));
  const std::string bytes = slurp(folder_ / "a.byj");
  spill(folder_ / "b.byj", bytes.substr(0, bytes.size() / 2));
  EXPECT_NE(error_of(folder_ / "b.byj"), "");
  const Outcome outcome = cut_to("b.byj", "c.byj", 0, ~std::uint64_t{0});
  EXPECT_EQ(outcome.notes.size(), 1U);
  EXPECT_EQ(outcome.events % 65'536, 0U);
  EXPECT_GT(outcome.events, 0U);
  EXPECT_NO_THROW(check(folder_ / "c.byj", {}));
}

}  // namespace
}  // namespace blockyard::journal::testing
