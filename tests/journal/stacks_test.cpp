// Call stacks are interned, refuse what does not exist, and their walker knows sound tables.
#include <gtest/gtest.h>

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

TEST(Stacks, every_reason_for_an_end_has_words) {
  EXPECT_EQ(stack_end_text(0), "deeper than recorded");
  EXPECT_EQ(stack_end_text(5), "unknown");
  EXPECT_EQ(stack_end_text(99), "unknown");
}

}  // namespace
}  // namespace blockyard::journal::testing
