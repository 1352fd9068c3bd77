// Maps of just-in-time compilers name the functions that they compiled.
#include "names/perf_map.hpp"

#include <gtest/gtest.h>

#include "../journal/journal_files.hpp"

namespace blockyard::names {
namespace {

PerfMap map_of(const std::string& text) {
  const journal::testing::Folder folder;
  journal::testing::spill(folder / "perf-1.map", text);
  return PerfMap(folder / "perf-1.map");
}

TEST(PerfMap, names_every_address_of_a_function) {
  const PerfMap map = map_of("1000 20 LazyCompile:*update game.js:12\n2000 8 stub\n");
  EXPECT_EQ(map.find(0x1000), "LazyCompile:*update game.js:12");
  EXPECT_EQ(map.find(0x101f), "LazyCompile:*update game.js:12");
  EXPECT_EQ(map.find(0x2007), "stub");
}

TEST(PerfMap, names_nothing_between_functions) {
  const PerfMap map = map_of("1000 20 a\n2000 8 b\n");
  for (const std::uint64_t address : {0x0u, 0xfffu, 0x1020u, 0x1fffu, 0x2008u}) EXPECT_EQ(map.find(address), "");
}

TEST(PerfMap, code_that_was_compiled_over_other_code_holds) {
  const PerfMap map = map_of("1000 100 old\n1010 10 new\n");
  EXPECT_EQ(map.find(0x1000), "old");
  EXPECT_EQ(map.find(0x1018), "new");
  EXPECT_EQ(map.find(0x1020), "old");
}

TEST(PerfMap, lines_that_are_none_are_skipped) {
  const PerfMap map =
      map_of("nonsense\n\n1000 zz x\n3000 10\n0x4000 0x10 prefixed\nffffffffffffffff 10 wraps\n5000 0 empty\n");
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.find(0x4008), "prefixed");
}

}  // namespace
}  // namespace blockyard::names
