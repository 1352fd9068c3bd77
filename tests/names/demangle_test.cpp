// Mangled names of C++ and Rust become what their authors wrote.
#include "names/demangle.hpp"

#include <gtest/gtest.h>

namespace blockyard::names {
namespace {

TEST(Demangle, names_of_cpp) {
  EXPECT_EQ(demangle("_ZN3app6Widget5outerEi"), "app::Widget::outer(int)");
  EXPECT_EQ(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

TEST(Demangle, legacy_names_of_rust_without_their_hash) {
  EXPECT_EQ(demangle("_ZN4core3ptr13drop_in_place17h0123456789abcdefE"), "core::ptr::drop_in_place");
  EXPECT_EQ(
      demangle("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE"),
      "<Test + 'static as foo::Bar<Test>>::bar");
}

TEST(Demangle, a_cpp_function_called_h_is_no_hash) { EXPECT_EQ(demangle("_ZN3app4h123Ev"), "app::h123()"); }

TEST(Demangle, parts_and_copies_of_a_function_are_called_like_it) {
  EXPECT_EQ(demangle("_ZN3app6Widget5outerEi.isra.0"), "app::Widget::outer(int)");
  EXPECT_EQ(demangle("main.cold"), "main");
  EXPECT_EQ(demangle("update.constprop.0.isra.1"), "update");
}

TEST(Demangle, procedures_of_fortran_modules) {
  EXPECT_EQ(demangle("__physics_MOD_step"), "physics::step");
  EXPECT_EQ(demangle("__libc_start_main"), "__libc_start_main");
  EXPECT_EQ(demangle("__MOD_step"), "__MOD_step");
}

#ifdef BLOCKYARD_LIBIBERTY
TEST(Demangle, names_of_d) { EXPECT_EQ(demangle("_D4game5spawnFiZv"), "game.spawn(int)"); }
TEST(Demangle, v0_names_of_rust) { EXPECT_EQ(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo"); }
#endif

TEST(Demangle, other_text_stays) {
  for (const char* name : {"main", "", "_Z", "_ZN", "_R", "malloc@plt", "operator new(unsigned long)"}) {
    EXPECT_EQ(demangle(name), name);
  }
}

}  // namespace
}  // namespace blockyard::names
