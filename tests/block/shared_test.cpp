// Two shared objects, each with its own copy of the inline code, and one pool between them.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "blockyard/static_block_allocator.hpp"

namespace blockyard {
namespace {

TEST(SharedObjects, have_one_pool_between_them) {
  using Blocks = StaticBlockAllocator<248, 8>;
  void* const plugin = dlopen(BLOCKYARD_TEST_PLUGIN, RTLD_NOW);
  ASSERT_NE(plugin, nullptr) << dlerror();
  const auto allocate = reinterpret_cast<void* (*)()>(dlsym(plugin, "plugin_allocate"));
  const auto free = reinterpret_cast<void (*)(void*)>(dlsym(plugin, "plugin_free"));
  void* const theirs = allocate();
  void* const ours = Blocks::allocate();
  EXPECT_EQ(Blocks::statistics().live_blocks, 2u);
  EXPECT_EQ(Blocks::statistics().pages, 1u);
  Blocks::free(theirs);
  free(ours);
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  dlclose(plugin);
  Blocks::free(Blocks::allocate());
}

}  // namespace
}  // namespace blockyard
