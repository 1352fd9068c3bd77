// Call stacks are interned, refuse what does not exist, and their walker knows sound tables.
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "journal/check.hpp"
#include "journal/cut.hpp"
#include "journal/format.hpp"
#include "journal/planes.hpp"
#include "journal_files.hpp"

namespace blockyard::journal::testing {
namespace {

/// The sentence that `body` throws.
template <typename Body>
std::string refused(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Stacks, the_same_frame_and_the_same_stack_have_one_index) {
  Stacks stacks;
  const auto module = stacks.add_module({.path = "/bin/a", .build_id = "ab"});
  const auto frame = stacks.intern_frame(module, 16);
  EXPECT_EQ(stacks.intern_frame(module, 16), frame);
  EXPECT_NE(stacks.intern_frame(no_module, 16), frame);
  const auto root = stacks.intern_node(no_node, frame);
  const auto leaf = stacks.intern_node(root, frame);
  EXPECT_NE(leaf, root);
  EXPECT_EQ(stacks.intern_node(root, frame), leaf);
  EXPECT_EQ(stacks.nodes()[leaf].parent, root);
  stacks.check();
}

TEST(Stacks, names_are_replaced_and_can_be_any_bytes) {
  Stacks stacks;
  const auto frame = stacks.intern_frame(no_module, 1);
  EXPECT_TRUE(stacks.names(frame).empty());
  const std::vector<NamedFunction> functions{{"caf\xE9", "a.cpp", 3}, {"outer", "", 0}};
  stacks.set_names(frame, functions);
  EXPECT_EQ(stacks.text(stacks.names(frame)[0].name), "caf\xE9");
  EXPECT_EQ(stacks.names(frame)[1].file, 0U);
  stacks.set_names(frame, std::span(functions).last(1));
  EXPECT_EQ(stacks.names(frame).size(), 1U);
  EXPECT_EQ(stacks.named_frames(), 1U);
  stacks.check();
  stacks.clear_names();
  EXPECT_FALSE(stacks.has_names());
}

TEST(Stacks, refuses_what_does_not_exist) {
  Stacks stacks;
  EXPECT_NE(refused([&] { stacks.intern_frame(0, 1); }).find("module 0, which does not exist"), std::string::npos);
  EXPECT_NE(refused([&] { stacks.intern_node(no_node, 0); }).find("stack frame 0, which"), std::string::npos);
  const auto frame = stacks.intern_frame(no_module, 1);
  EXPECT_NE(refused([&] { stacks.intern_node(3, frame); }).find("call stack 3, which"), std::string::npos);
  EXPECT_NE(refused([&] { stacks.set_names(7, {}); }), "");
  EXPECT_NE(refused([&] { stacks.set_unmapped(0, 1); }), "");
  EXPECT_NE(refused([&] { stacks.add_module({.path = "", .build_id = "Zz"}); }).find("hexadecimal"), std::string::npos);
  EXPECT_NE(refused([&] { stacks.add_module({.path = "", .build_id = "", .begin = 2, .end = 1}); }), "");
  stacks.check();
}

TEST(Stacks, a_node_that_was_added_without_a_search_is_found_by_the_next_one) {
  Stacks stacks;
  const auto frame = stacks.intern_frame(no_module, 1);
  const auto root = stacks.add_node(no_node, frame);
  const auto leaf = stacks.add_node(root, frame);
  EXPECT_EQ(stacks.intern_node(root, frame), leaf);
  const auto next = stacks.add_node(leaf, frame);
  EXPECT_EQ(stacks.intern_node(no_node, frame), root);
  EXPECT_EQ(stacks.intern_node(leaf, frame), next);
  EXPECT_EQ(stacks.counts().nodes, 3U);
  EXPECT_NE(refused([&] { stacks.add_node(7, frame); }), "");
  stacks.check();
}

TEST(Stacks, an_incomplete_stack_has_its_marker_at_its_root_only) {
  Stacks stacks;
  const auto marker = stacks.intern_node(no_node, stacks.intern_frame(StackEnd::depth_limit));
  const auto node = stacks.intern_node(marker, stacks.intern_frame(no_module, 1));
  EXPECT_NE(refused([&] { stacks.intern_node(node, stacks.intern_frame(StackEnd::no_rules)); }), "");
  stacks.check();
}

TEST(Stacks, a_subset_has_what_its_stacks_need_and_nothing_else) {
  const auto all = sample_stacks(500);
  Stacks some;
  StackSubset subset(*all, some, 6000);
  EXPECT_EQ(subset.node(no_node), no_node);
  const std::uint32_t copy = subset.node(499);
  EXPECT_EQ(subset.node(499), copy);
  subset.finish();
  some.check();
  EXPECT_EQ(some.counts().nodes, copy + 1);
  for (const Module& module : some.modules()) EXPECT_LE(module.mapped_ns, 3000U);
}

using Columns = std::initializer_list<std::pair<format::StackColumn, std::vector<std::uint64_t>>>;

std::string stack_payload(format::StackHead head, Columns columns) {
  PlaneEncoder planes(1);
  planes.begin();
  for (const auto& [column, values] : columns) planes.put(static_cast<std::uint8_t>(column), values);
  head.planes = planes.planes();
  std::string payload;
  format::put(payload, head);
  planes.append_to(payload);
  return payload;
}

/// A journal without a footer, whose call stacks have this payload.
class ForgedStacks : public ::testing::Test {
 protected:
  ForgedStacks() {
    Whole whole = sample(0);
    whole.stacks->intern_node(no_node, whole.stacks->intern_frame(no_module, 7));
    whole.events = {{.time_ns = 5, .size = 1, .block = 0, .site = 0}, {.time_ns = 6, .size = 2, .block = 1}};
    whole.header.has_addresses = false;
    write(folder_ / "good.byj", whole);
  }

  /// Of the section whose name this is: where its head begins, and its payload's size.
  static std::pair<std::size_t, std::size_t> section(const std::string& bytes, const char* name) {
    const std::size_t at = bytes.find(name);
    return {at, format::get<format::SectionHead>(bytes, at).payload_bytes};
  }

  void forge(const std::optional<std::string>& payload) {
    const std::string bytes = slurp(folder_ / "good.byj");
    const auto [stacks, size] = section(bytes, "STAK");
    std::string forged = bytes.substr(0, stacks);
    if (payload) {
      format::put(forged, format::seal(format::section_stacks, *payload));
      forged += *payload;
    }
    const std::size_t block = stacks + sizeof(format::SectionHead) + size;
    forged += bytes.substr(block, bytes.find("FOOT") - block);
    spill(folder_ / "forged.byj", forged);
  }

  void expect_refused(const std::optional<std::string>& payload, const std::string& part) {
    forge(payload);
    const std::string refused_with = error_of(folder_ / "forged.byj");
    EXPECT_NE(refused_with.find(part), std::string::npos) << "got: " << refused_with;
  }

  Folder folder_;
};

TEST_F(ForgedStacks, a_sound_one_is_read) {
  forge(stack_payload({.frames = 1, .nodes = 1}, {{format::StackColumn::frame_address, {7}}}));
  EXPECT_EQ(error_of(folder_ / "forged.byj"), "");
}

TEST_F(ForgedStacks, what_does_not_hold_together_is_refused_by_name) {
  using enum format::StackColumn;
  expect_refused(stack_payload({.frames = 1, .nodes = 1}, {{node_parent, {5}}}),
                 "call stack 0 continues one that does not exist");
  expect_refused(stack_payload({.frames = 1, .nodes = 1}, {{node_frame, {7}}}),
                 "call stack 0 names a stack frame that does not exist");
  expect_refused(stack_payload({.frames = 1, .nodes = 1}, {{frame_module, {9}}}),
                 "stack frame 0 names a module that does not exist");
  expect_refused(stack_payload({.frames = 2}, {}), "stack frame 1 is there twice");
  expect_refused(stack_payload({.frames = 2, .nodes = 2}, {{frame_module, {0, 1}}, {node_parent, {0, 1}}}),
                 "call stack 1 has the marker of an incomplete stack in its middle");
  expect_refused(stack_payload({.modules = 1, .unmappings = 2}, {{unmapped_ns, {5, 6}}}), "module 0 is unmapped twice");
  expect_refused(stack_payload({.first_node = 3}, {}), "a section is missing or doubled");
  expect_refused(stack_payload({.nodes = 1U << 30}, {}), "claims too many call stacks");
  expect_refused(std::nullopt, "event 0 has a call stack that the journal does not hold");
}

TEST_F(ForgedStacks, a_cut_keeps_all_events) {
  forge(stack_payload({.frames = 1, .nodes = 1}, {{format::StackColumn::node_parent, {5}}}));
  EXPECT_NE(refused([&] { cut(folder_ / "forged.byj", folder_ / "saved.byj", {}, {}); }).find("holds all events"),
            std::string::npos);
  EXPECT_EQ(check(folder_ / "saved.byj", {}).events, 2U);
  EXPECT_EQ(check(folder_ / "saved.byj", {}).events_with_stack, 0U);
}

TEST(Stacks, changed_bytes_under_a_right_checksum_are_refused_or_sound) {
  Folder folder;
  write(folder / "a.byj", sample_with_stacks(12));
  const std::string bytes = slurp(folder / "a.byj");
  for (const char* name : {"STAK", "SYMS"}) {
    const std::size_t at = bytes.find(name);
    const std::size_t begin = at + sizeof(format::SectionHead);
    const std::size_t size = format::get<format::SectionHead>(bytes, at).payload_bytes;
    for (std::size_t i = 0; i < size; ++i) {
      std::string changed = bytes;
      changed[begin + i] = static_cast<char>(changed[begin + i] ^ (1 << i % 8));
      const std::string payload = changed.substr(begin, size);
      const auto head = format::seal(format::get<format::SectionHead>(bytes, at).type, payload);
      std::memcpy(changed.data() + at, &head, sizeof head);
      spill(folder / "b.byj", changed);
      const std::string sentence = refused([&] { check(folder / "b.byj", {}); });
      if (sentence.empty()) continue;
      EXPECT_NE(sentence.find("b.byj, byte "), std::string::npos) << sentence;
    }
  }
}

TEST(Stacks, every_reason_for_an_end_has_words) {
  EXPECT_EQ(stack_end_text(0), "deeper than recorded");
  EXPECT_EQ(stack_end_text(5), "unknown");
  EXPECT_EQ(stack_end_text(99), "unknown");
}

}  // namespace
}  // namespace blockyard::journal::testing
