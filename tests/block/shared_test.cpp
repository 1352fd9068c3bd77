// Two shared objects, each with its own copy of the inline code, and one pool between them.
#include <gtest/gtest.h>

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#else
#include <windows.h>
#endif

#include "blockyard/static_block_allocator.hpp"

namespace blockyard {
namespace {

#if __has_include(<dlfcn.h>)
void* open_plugin() { return dlopen(BLOCKYARD_TEST_PLUGIN, RTLD_NOW); }
void* find(void* plugin, const char* name) { return dlsym(plugin, name); }
void close(void* plugin) { dlclose(plugin); }
#else
HMODULE open_plugin() { return LoadLibraryA(BLOCKYARD_TEST_PLUGIN); }
void* find(HMODULE plugin, const char* name) { return reinterpret_cast<void*>(GetProcAddress(plugin, name)); }
void close(HMODULE plugin) { FreeLibrary(plugin); }
#endif

TEST(SharedObjects, have_one_pool_between_them) {
  using Blocks = StaticBlockAllocator<248, 8>;
  auto* const plugin = open_plugin();
  ASSERT_NE(plugin, nullptr);
  const auto allocate = reinterpret_cast<void* (*)()>(find(plugin, "plugin_allocate"));
  const auto free = reinterpret_cast<void (*)(void*)>(find(plugin, "plugin_free"));
  void* const theirs = allocate();
  void* const ours = Blocks::allocate();
  EXPECT_EQ(Blocks::statistics().live_blocks, 2u);
  EXPECT_EQ(Blocks::statistics().pages, 1u);
  Blocks::free(theirs);
  free(ours);
  EXPECT_EQ(Blocks::statistics().live_blocks, 0u);
  close(plugin);
  Blocks::free(Blocks::allocate());
}

}  // namespace
}  // namespace blockyard
