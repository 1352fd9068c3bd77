// Names are stored in a journal, and nothing else of it changes.
#include "names/journal_names.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "compiled_program.hpp"
#include "journal/check.hpp"
#include "journal/format.hpp"
#include "journal/reader.hpp"
#include "journal/writer.hpp"

namespace blockyard::names {
namespace {

namespace fs = std::filesystem;

using journal::testing::Folder;
using journal::testing::slurp;
using testing::compile;
using testing::Program;

/// A journal of one allocation in `inner` and one in `hidden`, and of code that was compiled while the program ran.
void record(const std::string& path, const Program& program) {
  journal::Header header;
  header.threads = {{4711, "main"}};
  journal::Writer writer(path, header);
  journal::Stacks& stacks = writer.stacks();
  const std::uint32_t module = stacks.add_module({program.path, program.build_id, 0x10000, 0x20000, 0x10000});
  const std::uint32_t root = stacks.intern_node(journal::no_node, stacks.intern_frame(journal::StackEnd::depth_limit));
  const std::uint32_t inlined = stacks.intern_node(root, stacks.intern_frame(module, program.inlined));
  const std::uint32_t hidden = stacks.intern_node(root, stacks.intern_frame(module, program.hidden));
  const std::uint32_t generated = stacks.intern_node(root, stacks.intern_frame(journal::no_module, 0x7f0000001010));
  std::uint64_t block = 0;
  for (const std::uint32_t site : {inlined, hidden, generated}) {
    journal::Event event;
    event.time_ns = block * 100;
    event.size = 24;
    event.block = block++;
    event.site = site;
    writer.add(event);
  }
  writer.finish();
}

std::vector<std::string> names_of(const std::string& path) {
  const auto source = journal::open(path);
  std::vector<std::string> names;
  for (auto events = source->next(); !events.empty(); events = source->next()) {
    for (const journal::Event& event : events) {
      std::string text;
      const journal::Stacks& stacks = source->stacks();
      for (const journal::Function& function : stacks.names(stacks.nodes()[event.site].frame)) {
        text += stacks.text(function.name) + ":" + std::to_string(function.line) + " ";
      }
      names.push_back(text);
    }
  }
  return names;
}

std::string error_of(const std::string& path, const NamingOptions& options = {}) {
  try {
    name_journal(path, options, {});
  } catch (const journal::Error& error) {
    return error.what();
  }
  return {};
}

std::string line(const char* mark) { return std::to_string(testing::line_of(mark)); }

TEST(JournalNames, are_stored_and_the_journal_stays_sound) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  record(folder / "game.byj", program);
  journal::testing::spill(folder / "jit.map", "7f0000001000 100 compiled update\n");
  const Naming naming = name_journal(folder / "game.byj", {{}, folder / "jit.map"}, {});
  EXPECT_EQ(naming.frames, 3u);
  EXPECT_EQ(naming.named, 3u);
  ASSERT_EQ(naming.modules.size(), 1u);
  EXPECT_EQ(naming.modules[0].problem, "");
  EXPECT_EQ(journal::check(folder / "game.byj", {}).events, 3u);
  const std::vector<std::string> names = names_of(folder / "game.byj");
  EXPECT_EQ(names[0], "app::inner(int):" + line("inner") + " app::middle(int):" + line("middle") +
                          " app::Widget::outer(int):" + line("outer") + " ");
  EXPECT_EQ(names[2], "compiled update:0 ");
}

TEST(JournalNames, storing_them_twice_changes_nothing) {
  const Folder folder;
  record(folder / "game.byj", compile(folder, "-g"));
  name_journal(folder / "game.byj", {}, {});
  const std::string once = slurp(folder / "game.byj");
  name_journal(folder / "game.byj", {}, {});
  EXPECT_EQ(slurp(folder / "game.byj"), once);
}

TEST(JournalNames, that_were_stored_stay_where_the_program_is_gone) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  record(folder / "game.byj", program);
  name_journal(folder / "game.byj", {}, {});
  const std::vector<std::string> before = names_of(folder / "game.byj");
  fs::remove(program.path);
  const Naming naming = name_journal(folder / "game.byj", {}, {});
  EXPECT_EQ(naming.named, 2u);
  EXPECT_NE(naming.modules[0].problem, "");
  EXPECT_EQ(names_of(folder / "game.byj"), before);
}

TEST(JournalNames, that_were_stored_stay_where_the_program_is_stripped) {
  const Folder folder;
  const Program program = compile(folder, "");
  record(folder / "game.byj", program);
  name_journal(folder / "game.byj", {}, {});
  const std::vector<std::string> before = names_of(folder / "game.byj");
  testing::output_of("strip '" + program.path + "'");
  EXPECT_EQ(name_journal(folder / "game.byj", {}, {}).named, 2u);
  EXPECT_EQ(names_of(folder / "game.byj"), before);
}

TEST(JournalNames, replace_where_a_function_begins_which_is_no_name) {
  const Folder folder;
  const Program program = compile(folder, "");
  testing::output_of("cd '" + folder / "" + "' && mkdir whole && cp game whole && strip game");
  record(folder / "game.byj", program);
  EXPECT_EQ(name_journal(folder / "game.byj", {}, {}).named, 0u);
  EXPECT_TRUE(names_of(folder / "game.byj")[0].starts_with("+0x"));
  EXPECT_FALSE(journal::open(folder / "game.byj")->stacks().has_names());
  EXPECT_EQ(name_journal(folder / "game.byj", {{{folder / "whole"}, false}, {}}, {}).named, 2u);
  EXPECT_EQ(names_of(folder / "game.byj")[0], "app::Widget::outer(int):0 ");
}

TEST(JournalNames, the_file_keeps_its_permissions_and_leaves_nothing_beside_it) {
  const Folder folder;
  record(folder / "game.byj", compile(folder, "-g"));
  fs::permissions(folder / "game.byj", fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  const std::size_t files = folder.files();
  name_journal(folder / "game.byj", {}, {});
  EXPECT_EQ(fs::status(folder / "game.byj").permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  EXPECT_EQ(folder.files(), files);
}

TEST(JournalNames, need_a_journal_with_call_stacks) {
  const Folder folder;
  journal::testing::spill(folder / "game.txt", "a 100 A0 7 1000\n");
  EXPECT_NE(error_of(folder / "game.txt").find("blockyard convert"), std::string::npos);
  journal::Writer(folder / "bare.byj", {}).finish();
  EXPECT_NE(error_of(folder / "bare.byj").find("holds no allocation"), std::string::npos);
  record(folder / "game.byj", compile(folder, "-g"));
  EXPECT_NE(error_of(folder / "game.byj", {{{folder / "missing"}, false}, {}}).find("no folder"), std::string::npos);
  EXPECT_NE(error_of(folder / "game.byj", {{}, folder / "missing.map"}).find("--perf-map"), std::string::npos);
}

TEST(JournalNames, a_journal_without_call_stacks_is_refused_at_its_first_allocation) {
  const Folder folder;
  journal::Header header;
  header.threads = {{4711, "main"}};
  journal::Writer writer(folder / "bare.byj", header);
  journal::Event event;
  for (event.block = 0; event.block < 4 * journal::format::block_events; ++event.block) {
    event.size = event.block * event.block % 10'007;  // hard to compress: the footer is a small part of the file
    writer.add(event);
  }
  writer.finish();
  std::string bytes = slurp(folder / "bare.byj");
  bytes[bytes.size() * 3 / 4] ^= 1;  // what lies there is not read
  journal::testing::spill(folder / "bare.byj", bytes);
  ASSERT_THROW(journal::check(folder / "bare.byj", {}), journal::Error);
  EXPECT_NE(error_of(folder / "bare.byj").find("no call stacks"), std::string::npos);
}

TEST(JournalNames, a_journal_without_a_footer_is_left_alone) {
  const Folder folder;
  record(folder / "game.byj", compile(folder, "-g"));
  const std::string whole = slurp(folder / "game.byj");
  const std::string torn = whole.substr(0, whole.find("FOOT"));
  journal::testing::spill(folder / "game.byj", torn);
  EXPECT_NE(error_of(folder / "game.byj"), "");
  EXPECT_EQ(slurp(folder / "game.byj"), torn);
}

TEST(JournalNames, a_missing_footer_is_reported_before_missing_call_stacks) {
  const Folder folder;
  journal::Writer(folder / "bare.byj", {}).finish();
  const std::string whole = slurp(folder / "bare.byj");
  journal::testing::spill(folder / "bare.byj", whole.substr(0, whole.find("FOOT")));
  EXPECT_NE(error_of(folder / "bare.byj").find("has no footer"), std::string::npos);
}

TEST(JournalNames, main_of_a_stripped_program_is_what_the_c_library_calls) {
  const Folder folder;
  const Program program = compile(folder, "-s");
  const std::string path = folder / "game.byj";
  journal::Header header;
  header.threads = {{4711, "main"}};
  journal::Writer writer(path, header);
  journal::Stacks& stacks = writer.stacks();
  const std::uint32_t game = stacks.add_module({program.path, program.build_id, 0x10000, 0x20000, 0x10000});
  const std::uint32_t libc = stacks.add_module({"/gone/libc.so.6", "", 0x30000, 0x40000, 0x30000});
  const std::uint32_t start = stacks.intern_frame(libc, 0x100);
  const journal::NamedFunction name{"__libc_start_main", {}, 0};
  stacks.set_names(start, {&name, 1});
  const std::uint32_t nameless = stacks.intern_frame(libc, 0x200);
  const journal::NamedFunction place{"+0x1f0", {}, 0};
  stacks.set_names(nameless, {&place, 1});
  const std::uint32_t begin = stacks.intern_node(stacks.intern_node(journal::no_node, start), nameless);
  const std::uint32_t called = stacks.intern_node(begin, stacks.intern_frame(game, program.inlined));
  const std::uint32_t inner = stacks.intern_node(called, stacks.intern_frame(game, program.hidden));
  for (const std::uint32_t site : {called, inner}) {
    journal::Event event;
    event.size = 24;
    event.block = site - called;
    event.site = site;
    writer.add(event);
  }
  writer.finish();
  name_journal(path, {}, {});
  const auto names = names_of(path);
  EXPECT_EQ(names[0], "main:0 ");
  EXPECT_TRUE(names[1].starts_with("+0x")) << names[1];
}

}  // namespace
}  // namespace blockyard::names
