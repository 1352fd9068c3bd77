/// Scudo, LLVM's hardened allocator, as its stand-alone shared library. Prefaulted: nothing is released
/// (allocators.toml), populated by use. Each size class has a region of its own, so populated memory serves only its
/// own class. Its malloc_usable_size returns what was asked for, so there is no by_adapter_usable_size.
#include <string>

#include "support/library_adapter.hpp"
#include "support/populate.hpp"

namespace {

using blockyard::adapters::Library;

std::string bind(Library& scudo, by_adapter&) {
  // A marker that no other malloc has: the same function names in a file that is not Scudo must not be enough.
  void (*print_stats)() = nullptr;
  scudo.bind("__scudo_print_stats", print_stats);
  return blockyard::adapters::version_of_package("of LLVM 19");
}

int populate(const by_adapter_setup& setup, by_adapter& adapter) {
  constexpr uint64_t largest_of_its_classes = 32768;
  blockyard::adapters::populate_by_use(adapter, blockyard::adapters::bytes_for_peak(setup), largest_of_its_classes);
  return 0;
}

}  // namespace

extern "C" BY_API const by_adapter* by_adapter_get() {
  return blockyard::adapters::library_adapter(
      {.name = "scudo",
       .library = "/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.scudo_standalone-" BLOCKYARD_MACHINE ".so",
       .names = {.malloc = "malloc", .calloc = "calloc", .realloc = "realloc", .memalign = "memalign", .free = "free"},
       .bind = bind,
       .populate = populate});
}
