// Runs each teardown case in its own process and checks its exit status and standard error.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "shared/program.hpp"

namespace {

using blockyard::testing::Ended;
using blockyard::testing::run_program;

Ended run_case(const std::string& name, const std::string& environment = {}) {
  return run_program(BLOCKYARD_TEARDOWN_CASES " " + name, environment);
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void ends_well(const std::string& name) {
  for (const char* const environment : {"", "BLOCKYARD_CHECKS=1"}) {
    const Ended ended = run_case(name, environment);
    EXPECT_EQ(ended.status, 0) << environment << ended.said;
    EXPECT_EQ(ended.said, "");
  }
}

TEST(Teardown, static_constructors_destructors_and_atexit_may_allocate) { ends_well("before_main_and_at_exit"); }

TEST(Teardown, thread_local_destructors_may_allocate) { ends_well("thread_local_destructors"); }

TEST(Teardown, a_thread_may_run_on_while_the_process_ends) { ends_well("detached_thread_at_exit"); }

#if __has_include(<sys/wait.h>)
TEST(Teardown, a_forked_child_allocates_and_frees_what_any_thread_of_its_parent_made) { ends_well("fork"); }

TEST(Teardown, a_program_with_one_thread_may_fork_in_a_signal_handler) { ends_well("fork_in_a_signal_handler"); }

TEST(LeakReport, is_silent_in_a_forked_child) { EXPECT_FALSE(contains(run_case("leaks_in_child").said, "Leaked")); }
#endif

TEST(LeakReport, names_type_count_and_bytes_at_exit) {
  for (const Ended& ended : {run_case("leaks_reported"), run_case("leaks_by_environment", "BLOCKYARD_LEAKS=1"),
                             run_case("leaks_by_environment", "BLOCKYARD_LEAKS=2")}) {
    EXPECT_EQ(ended.status, 0);
    EXPECT_TRUE(contains(ended.said, "leaked 3 blocks of 232 bytes (696 bytes)")) << ended.said;
    EXPECT_TRUE(contains(ended.said, "Leaked")) << ended.said;
  }
}

TEST(LeakReport, is_silent_unless_asked_for) {
  EXPECT_EQ(run_case("leaks_by_environment").said, "");
  EXPECT_EQ(run_case("leaks_by_environment", "BLOCKYARD_LEAKS=0").said, "");
}

TEST(LeakReport, tells_types_of_one_size_apart_and_names_a_containers_elements) {
  const Ended ended = run_case("leaks_of_two_types_of_a_size", "BLOCKYARD_LEAKS=1");
  EXPECT_EQ(ended.status, 0);
  const auto line_with = [&](const std::string& part) {
    const std::size_t at = ended.said.find(part);
    return at == std::string::npos ? "" : ended.said.substr(at, ended.said.find('\n', at) - at);
  };
  EXPECT_TRUE(contains(line_with("leaked 3 blocks of 232 bytes (696 bytes)"), "Leaked")) << ended.said;
  EXPECT_TRUE(contains(line_with("leaked 1 block of 232 bytes (232 bytes)"), "Other")) << ended.said;
  EXPECT_TRUE(contains(line_with("leaked 2 blocks of 240 bytes (480 bytes)"), "List<")) << ended.said;
}

TEST(LeakReport, can_be_had_on_request) {
  EXPECT_TRUE(contains(run_case("leaks_on_request").said, "leaked 3 blocks of 232 bytes"));
}

void is_caught(const std::string& name, const std::string& sentence) {
  const Ended ended = run_case(name, "BLOCKYARD_CHECKS=1");
  EXPECT_NE(ended.status, 0);
#if defined(__SANITIZE_ADDRESS__)
  // AddressSanitizer may report the access to the poisoned block before our own check does.
  EXPECT_TRUE(contains(ended.said, sentence) || contains(ended.said, "AddressSanitizer: use-after-poison"))
      << ended.said;
#else
  EXPECT_TRUE(contains(ended.said, sentence)) << ended.said;
#endif
}

TEST(CheckedProcess, takes_and_frees_blocks_larger_than_the_smallest_slab) { ends_well("large_blocks"); }

TEST(CheckedProcess, catches_double_frees) {
  is_caught("double_free", "blockyard: double free");
  is_caught("static_double_free", "blockyard: double free");
  is_caught("static_large_double_free", "blockyard: double free");
}

TEST(CheckedProcess, catches_foreign_frees) {
  is_caught("foreign_free", "blockyard: foreign free");
  is_caught("static_foreign_free", "blockyard: foreign free (the block is another pool's)");
  is_caught("foreign_free_without_a_pool", "blockyard: foreign free");
  is_caught("interior_free", "blockyard: foreign free (the address is inside a block)");
}

TEST(CheckedProcess, catches_writes_to_freed_blocks) { is_caught("use_after_free", "blockyard: use after free"); }

#if __has_include(<sys/wait.h>)
TEST(Exhaustion, a_limited_address_space_serves_what_it_can_and_recovers) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: a sanitizer's own mappings don't fit a limited address space; run it in a release build";
#endif
  const Ended ended = run_program(BLOCKYARD_EXHAUSTION_CASE);
  EXPECT_EQ(ended.status, 0) << ended.said;
}

TEST(Valgrind, knows_pools_blocks_and_frees) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: sanitized programs don't run under Valgrind";
#endif
  if (std::system("command -v valgrind >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "skipped: valgrind is not installed, so its pools were NOT checked";
  }
  const std::string valgrind = "valgrind -q --error-exitcode=9 " BLOCKYARD_TEARDOWN_CASES " ";
  const Ended fault = run_program(valgrind + "valgrind_sees_use_after_free");
  EXPECT_EQ(fault.status, 9) << fault.said;
  EXPECT_TRUE(contains(fault.said, "Invalid read")) << fault.said;
  const Ended clean = run_program(valgrind + "valgrind_sees_no_fault");
  EXPECT_EQ(clean.status, 0) << clean.said;
}
#endif

}  // namespace
