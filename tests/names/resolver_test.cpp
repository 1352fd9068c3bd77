// Addresses of real programs become functions and lines: each test compiles one program, runs it, and asks for the call
// that the program itself reported.
#include "names/resolver.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiled_program.hpp"
#include "journal/stacks.hpp"

namespace blockyard::names {
namespace {

using journal::testing::Folder;
using testing::compile;
using testing::has;
using testing::line_of;
using testing::output_of;
using testing::Program;

Resolved resolve(const Program& program, Options options = {}) {
  return Resolver(options).resolve(program.path, program.build_id, std::vector{program.inlined, program.hidden});
}

void expect_lines(const Resolved& found) {
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.symbols, Symbols::lines);
  ASSERT_EQ(found.functions.size(), 2u);
  const Functions& functions = found.functions[0];
  ASSERT_EQ(functions.size(), 3u);
  EXPECT_EQ(functions[0].name, "app::inner(int)");
  EXPECT_EQ(functions[1].name, "app::middle(int)");
  EXPECT_EQ(functions[2].name, "app::Widget::outer(int)");
  EXPECT_EQ(functions[0].line, line_of("inner"));
  EXPECT_EQ(functions[1].line, line_of("middle"));
  EXPECT_EQ(functions[2].line, line_of("outer"));
  for (const Function& function : functions) EXPECT_TRUE(function.file.ends_with("game.cpp")) << function.file;
  const Functions& hidden = found.functions[1];
  ASSERT_EQ(hidden.size(), 1u);
  EXPECT_TRUE(hidden[0].name.starts_with("app::(anonymous namespace)::hidden")) << hidden[0].name;
  EXPECT_EQ(hidden[0].line, line_of("hidden"));
}

void expect_nothing(const Resolved& found, const std::string& problem) {
  EXPECT_EQ(found.symbols, Symbols::none);
  EXPECT_NE(found.problem.find(problem), std::string::npos) << found.problem;
  for (const Functions& functions : found.functions) EXPECT_TRUE(functions.empty());
}

class InEachForm : public ::testing::TestWithParam<const char*> {};

TEST_P(InEachForm, functions_and_lines_are_found_inlined_ones_included) {
  const Folder folder;
  expect_lines(resolve(compile(folder, GetParam())));
}

TEST_P(InEachForm, clang_says_the_same) {
  if (!has("clang++")) GTEST_SKIP() << "no clang++";
  const Folder folder;
  expect_lines(resolve(compile(folder, GetParam(), "clang++")));
}

INSTANTIATE_TEST_SUITE_P(Resolver, InEachForm,
                         ::testing::Values("-g", "-g -no-pie", "-gdwarf-4", "-gdwarf-3", "-g -gz=zlib",
                                           "-gsplit-dwarf -g", "-gdwarf-4 -gsplit-dwarf -g"));

TEST(Resolver, sections_that_are_compressed_with_zstd_are_read_in_a_program_and_in_a_debug_file) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  output_of("cd '" + folder / "" + "' && objcopy --compress-debug-sections=zstd game");
  expect_lines(resolve(program));
  output_of("cd '" + folder / "" + "' && mkdir symbols && objcopy --only-keep-debug --compress-debug-sections=zstd " +
            "game symbols/game.debug && strip game");
  expect_lines(resolve(program, {{folder / "symbols"}, false}));
}

TEST(Resolver, a_damaged_compressed_section_is_not_called_missing) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  output_of("cd '" + folder / "" + "' && objcopy --compress-debug-sections=zstd game");
  std::string bytes = journal::testing::slurp(program.path);
  const std::string magic("\x28\xB5\x2F\xFD", 4);
  const std::size_t at = bytes.find(magic);
  ASSERT_NE(at, std::string::npos);
  for (std::size_t next = at; next != std::string::npos; next = bytes.find(magic, next + 1)) bytes[next] = 0;
  journal::testing::spill(program.path, bytes);
  EXPECT_NE(resolve(program).problem.find("is damaged"), std::string::npos) << resolve(program).problem;
}

TEST(Resolver, lambdas_and_unnamed_classes_of_different_functions_have_different_names) {
  const Folder folder;
  journal::testing::spill(folder / "extra.hpp", R"(
static struct { __attribute__((noinline)) void tick() { leaf("tick"); asm volatile(""); } } unnamed;
namespace app {
static void lambdas() {
  auto one = [](int x) __attribute__((noinline)) { leaf("one"); asm volatile(""); return x; };
  auto two = [](int x) __attribute__((noinline)) { leaf("two"); asm volatile(""); return x; };
  one(1);
  two(2);
}
void others(int) {
  [&] { leaf("three"); asm volatile(""); }();  // inlined
  unnamed.tick();
}
}
)");
  std::string text = testing::program_text;
  text.insert(text.find("int main()"), "#include \"extra.hpp\"\n");
  text.insert(text.find("  app::Widget widget;"), "  app::lambdas(); app::others(1);\n");
  journal::testing::spill(folder / "lam.cpp", text);
  output_of("cd '" + folder / "" + "' && " + BLOCKYARD_CXX +
            " -std=c++20 -O2 -g -DEXTRA=1 -Wl,--build-id lam.cpp -o lam");
  std::istringstream words(output_of("'" + folder / "lam" + "'"));
  std::vector<std::uint64_t> addresses;
  std::vector<std::string> what;
  std::string word;
  for (std::uint64_t address = 0; words >> word >> std::hex >> address;) {
    what.push_back(word);
    addresses.push_back(address);
  }
  const std::string path = folder / "lam";
  const Resolved found = Resolver({}).resolve(path, build_id_of(path), addresses);
  std::map<std::string, std::string> names;
  for (std::size_t i = 0; i < what.size(); ++i) names[what[i]] = found.functions[i].front().name;
  EXPECT_EQ(names["one"], "app::lambdas()::{lambda#1}::operator()");
  EXPECT_EQ(names["two"], "app::lambdas()::{lambda#2}::operator()");
  EXPECT_EQ(names["three"], "app::others(int)::{lambda#1}::operator()");
  EXPECT_EQ(names["tick"], "{unnamed type at extra.hpp:2}::tick");
}

TEST(Resolver, minimal_debug_information_is_enough_for_inlined_functions) {
  const Folder folder;
  const Resolved found = resolve(compile(folder, "-g1"));
  ASSERT_EQ(found.functions[0].size(), 3u);
  EXPECT_EQ(found.functions[0][0].line, line_of("inner"));
  EXPECT_EQ(found.functions[0][2].line, line_of("outer"));
}

TEST(Resolver, the_debug_file_beside_a_stripped_program_is_found) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  output_of("cd '" + folder / "" +
            "' && mkdir .debug && objcopy --only-keep-debug game .debug/game.debug && strip game" +
            " && objcopy --add-gnu-debuglink=.debug/game.debug game");
  expect_lines(resolve(program));
}

TEST(Resolver, a_debug_file_is_found_by_its_build_id_wherever_it_lies_in_the_users_folder) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  output_of("cd '" + folder / "" + "' && mkdir -p symbols/of/release && objcopy --only-keep-debug game " +
            "symbols/of/release/anything && strip game");
  EXPECT_EQ(resolve(program).symbols, Symbols::none);
  expect_lines(resolve(program, {{folder / "symbols"}, false}));
}

TEST(Resolver, a_program_that_is_gone_is_read_from_its_debug_file) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  output_of("cd '" + folder / "" +
            "' && mkdir symbols && objcopy --only-keep-debug game symbols/game.debug && rm game");
  expect_nothing(resolve(program), "not on this machine");
  expect_lines(resolve(program, {{folder / "symbols"}, false}));
}

TEST(Resolver, what_dwz_moved_into_another_file_is_found) {
  if (!has("dwz")) GTEST_SKIP() << "no dwz";
  const Folder folder;
  const Program program = compile(folder, "-g -gdwarf-4");
  output_of("cd '" + folder / "" + "' && cp game twin && mkdir common && dwz -m common/shared.debug game twin");
  expect_lines(resolve(program));
  output_of("cd '" + folder / "" + "' && mv common elsewhere");
  expect_lines(resolve(program, {{folder / "elsewhere"}, false}));
}

TEST(Resolver, what_the_linker_moved_into_another_unit_keeps_its_scope) {
  const Folder folder;
  // A function of C has no symbol that says its scope, as Rust's have none that is as good as the tree.
  const Resolved found = resolve(compile(folder, "-g -flto -DLINKAGE='extern \"C\"'"));
  ASSERT_EQ(found.functions[0].size(), 3u);
  EXPECT_EQ(found.functions[0][0].name, "app::inner");
  EXPECT_EQ(found.functions[0][1].name, "app::middle(int)");
}

TEST(Resolver, a_missing_dwo_file_costs_the_inlined_functions_and_says_so) {
  const Folder folder;
  const Program program = compile(folder, "-g -gsplit-dwarf");
  output_of("rm '" + folder / "" + "'*.dwo");
  const Resolved found = resolve(program);
  EXPECT_NE(found.problem.find(".dwo"), std::string::npos) << found.problem;
  ASSERT_EQ(found.functions[0].size(), 1u);
  EXPECT_EQ(found.functions[0][0].name, "app::Widget::outer(int)");
}

/// A function that is an instance of an entry which a split unit's skeleton holds beside the unit in its .dwo file.
constexpr const char* instance_of_skeletons_entry = R"(
  .text
  .globl instance
instance:
  nop
  nop
  .section .debug_info,"",@progbits
  .long skeleton_end - skeleton
skeleton:
  .short 5
  .byte 4, 8
  .long abbreviations
  .quad 0x1122334455667788
  .byte 1
  .string "split.dwo"
entry:
  .byte 2
  .string "shared"
  .byte 0
skeleton_end:
  .long unit_end - unit
unit:
  .short 5
  .byte 1, 8
  .long abbreviations
  .byte 3
  .quad instance
  .long 2
  .byte 4
  .long entry
  .quad instance
  .long 2
  .byte 0
unit_end:
  .section .debug_abbrev,"",@progbits
abbreviations:
  .byte 1, 0x4a, 1, 0x76, 8, 0, 0
  .byte 2, 0x2e, 0, 0x03, 8, 0, 0
  .byte 3, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0
  .byte 4, 0x2e, 0, 0x31, 16, 0x11, 1, 0x12, 6, 0, 0
  .byte 0
)";

constexpr const char* split_unit = R"(
  .section .debug_info.dwo,"",@progbits
  .long unit_end - unit
unit:
  .short 5
  .byte 5, 8
  .long 0
  .quad 0x1122334455667788
  .byte 1
  .string "split.cpp"
unit_end:
  .section .debug_abbrev.dwo,"",@progbits
  .byte 1, 0x11, 0, 0x03, 8, 0, 0
  .byte 0
)";

TEST(Resolver, an_entry_in_the_skeleton_of_a_split_unit_names_a_function_of_another_unit) {
  const Folder folder;
  journal::testing::spill(folder / "instance.s", instance_of_skeletons_entry);
  journal::testing::spill(folder / "split.s", split_unit);
  output_of("cd '" + folder / "" + "' && " BLOCKYARD_CXX " -c split.s -o split.dwo");
  Program program = compile(folder, "instance.s");
  const std::string symbols = output_of("nm '" + program.path + "'");
  program.inlined = std::stoull(symbols.substr(symbols.find(" T instance") - 16, 16), nullptr, 16);
  const Resolved found = resolve(program);
  EXPECT_EQ(found.problem, "");
  ASSERT_EQ(found.functions[0].size(), 1u);
  EXPECT_EQ(found.functions[0][0].name, "shared");
}

TEST(Resolver, without_debug_information_the_symbol_table_names_functions) {
  const Folder folder;
  const Resolved found = resolve(compile(folder, ""));
  EXPECT_EQ(found.symbols, Symbols::symbols);
  EXPECT_NE(found.problem, "");
  ASSERT_EQ(found.functions[0].size(), 1u);
  EXPECT_EQ(found.functions[0][0], (Function{"app::Widget::outer(int)", "", 0}));
}

TEST(Resolver, a_stripped_program_names_what_it_exports_and_nothing_else) {
  const Folder folder;
  const Program program = compile(folder, "-rdynamic -s");
  const Resolved found = resolve(program);
  EXPECT_EQ(found.symbols, Symbols::exports);
  ASSERT_EQ(found.functions[0].size(), 1u);
  EXPECT_EQ(found.functions[0][0].name, "app::Widget::outer(int)");
  ASSERT_EQ(found.functions[1].size(), 1u);
  EXPECT_TRUE(journal::is_place_name(found.functions[1][0].name)) << found.functions[1][0].name;
}

TEST(Resolver, without_any_symbols_a_function_is_called_by_where_it_begins) {
  for (const char* flags : {"", "-no-pie"}) {
    const Folder folder;
    const Program program = compile(folder, flags);
    const std::string symbols = output_of("nm -C '" + program.path + "'");
    output_of("strip '" + program.path + "'");
    const Resolved found = resolve(program);
    EXPECT_EQ(found.symbols, Symbols::none);
    EXPECT_NE(found.problem, "");
    for (const auto& [at, name] : {std::pair{0U, "app::Widget::outer("}, std::pair{1U, "::hidden("}}) {
      const std::size_t line = symbols.rfind('\n', symbols.find(name)) + 1;
      ASSERT_EQ(found.functions[at].size(), 1u);
      const std::string begin = journal::place_name(std::stoull(symbols.substr(line, 16), nullptr, 16));
      EXPECT_EQ(found.functions[at][0], (Function{begin, "", 0}));
    }
  }
}

TEST(Resolver, code_without_unwind_tables_has_no_functions) {
  const Folder folder;
  const Resolved found = resolve(compile(folder, "-s -fno-asynchronous-unwind-tables -fno-exceptions"));
  for (const Functions& functions : found.functions) EXPECT_TRUE(functions.empty());
}

TEST(Resolver, another_build_of_the_program_is_refused) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  compile(folder, "-g -DOTHER -O1");
  const Resolved found = resolve(program);
  expect_nothing(found, "another build");
  EXPECT_NE(found.problem.find(program.build_id), std::string::npos) << found.problem;
}

TEST(Resolver, a_file_that_is_no_program_is_refused) {
  const Folder folder;
  journal::testing::spill(folder / "game", "no program");
  expect_nothing(resolve({folder / "game", "", 16, 32}), "can't be read");
  expect_nothing(resolve({folder / "game", "abcdef", 16, 32}), "no build-id");
}

TEST(Resolver, a_damaged_program_ends_in_no_worse_than_missing_names) {
  const Folder folder;
  const Program program = compile(folder, "-g");
  const std::string whole = journal::testing::slurp(program.path);
  for (const std::size_t bytes : {std::size_t{64}, whole.size() / 3, whole.size() / 2, whole.size() - 1000}) {
    journal::testing::spill(program.path, whole.substr(0, bytes));
    EXPECT_EQ(Resolver({}).resolve(program.path, "", std::vector{program.inlined}).functions.size(), 1u);
  }
}

TEST(Resolver, no_server_is_asked_unless_the_user_wishes) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  std::atomic<int> asked = 0;
  std::atomic<bool> done = false;
  std::thread server([&] {
    while (!done) {
      pollfd waiting{listener, POLLIN, 0};
      constexpr int moment_ms = 20;
      if (::poll(&waiting, 1, moment_ms) <= 0) continue;
      ++asked;
      ::close(::accept(listener, nullptr, nullptr));
    }
  });
  const Folder folder;
  const Program program = compile(folder, "-s");
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  ::setenv("DEBUGINFOD_CACHE_PATH", (folder / "cache").c_str(), 1);
  ::setenv("DEBUGINFOD_URLS", url.c_str(), 1);
  resolve(program);
  EXPECT_EQ(asked, 0);
  done = true;
  server.join();
  ::close(listener);
  ::unsetenv("DEBUGINFOD_URLS");
}

}  // namespace
}  // namespace blockyard::names
