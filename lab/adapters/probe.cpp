/// blockyard-probe ADAPTER [--options TEXT] [--populate]: starts one allocator, allocates a few blocks and prints its
/// name, version and flags.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "blockyard/adapter.h"

namespace {

constexpr const char* help_text =
    "Usage: blockyard-probe ADAPTER [--options TEXT] [--populate]\n"
    "\n"
    "Loads one adapter, allocates and frees a few blocks, and prints the allocator's name, version and flags as "
    "JSON.\n"
    "Exits 1 with one sentence when the allocator can't be used.\n";

struct Arguments {
  const char* adapter = nullptr;
  const char* options = "";
  bool populate = false;
};

bool parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--populate") {
      arguments.populate = true;
    } else if (word == "--options" && i + 1 < count) {
      arguments.options = words[++i];
    } else if (!word.starts_with('-') && arguments.adapter == nullptr) {
      arguments.adapter = words[i];
    } else {
      return false;
    }
  }
  return arguments.adapter != nullptr;
}

int fail(const std::string& sentence) {
  std::fprintf(stderr, "blockyard: %s\n", sentence.c_str());
  return 1;
}

// A block of each kind and size, written to and freed; some are large enough to get their own mapping.
bool works(const by_adapter& adapter) {
  const auto release = [&adapter](void* block, size_t size, size_t alignment) {
    if ((adapter.flags & BY_ADAPTER_SIZED_FREE) != 0) {
      adapter.free_sized(block, size, alignment);
    } else {
      adapter.free(block);
    }
  };
  if (adapter.thread_start != nullptr) adapter.thread_start();
  for (size_t size = 16; size <= size_t{1} << 18; size *= 8) {
    void* plain = adapter.allocate(size);
    void* zeroed = adapter.allocate_zeroed(size);
    void* aligned = adapter.allocate_aligned(64, size);
    if (plain == nullptr || zeroed == nullptr || aligned == nullptr) return false;
    std::memset(plain, 1, size);
    std::memset(aligned, 1, size);
    plain = adapter.reallocate(plain, size, 16, 2 * size);
    if (plain == nullptr) return false;
    release(plain, 2 * size, 16);
    release(zeroed, size, 16);
    release(aligned, size, 64);
  }
  if (adapter.thread_stop != nullptr) adapter.thread_stop();
  return true;
}

void print_quoted(const char* text) {
  std::putchar('"');
  for (; *text != '\0'; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    if (byte == '"' || byte == '\\') std::putchar('\\');
    if (byte >= 0x20) std::putchar(byte);
  }
  std::putchar('"');
}

void print(const by_adapter& adapter) {
  constexpr struct {
    uint32_t bit;
    const char* name;
  } flag_names[] = {{BY_ADAPTER_NEEDS_POOL, "needs_pool"},
                    {BY_ADAPTER_NEEDS_LOCK, "needs_lock"},
                    {BY_ADAPTER_SIZED_FREE, "sized_free"},
                    {BY_ADAPTER_EMULATES_ZEROED, "emulates_zeroed"},
                    {BY_ADAPTER_EMULATES_REALLOCATE, "emulates_reallocate"},
                    {BY_ADAPTER_EMULATES_ALIGNED, "emulates_aligned"}};
  std::printf("{\"name\": ");
  print_quoted(adapter.name);
  std::printf(", \"version\": ");
  print_quoted(adapter.version);
  std::printf(", \"flags\": [");
  const char* separator = "";
  for (const auto& [bit, name] : flag_names) {
    if ((adapter.flags & bit) == 0) continue;
    std::printf("%s\"%s\"", separator, name);
    separator = ", ";
  }
  std::printf("]}\n");
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (count == 2 && (std::string_view(words[1]) == "--help" || std::string_view(words[1]) == "-h")) {
    std::fputs(help_text, stdout);
    return 0;
  }
  if (!parse(count, words, arguments)) {
    std::fputs(help_text, stderr);
    return 2;
  }
  void* file = dlopen(arguments.adapter, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) return fail(dlerror());
  const auto get = reinterpret_cast<const by_adapter* (*)()>(dlsym(file, "by_adapter_get"));
  if (get == nullptr)
    return fail(std::string(arguments.adapter) + " is not an adapter: it does not export by_adapter_get");
  const by_adapter* adapter = get();
  if (adapter->abi != BY_ADAPTER_ABI)
    return fail(std::string(arguments.adapter) + " was built for another adapter ABI");

  char error[512] = "the adapter failed without a reason";
  by_adapter_setup setup = {};
  setup.abi = BY_ADAPTER_ABI;
  setup.threads = 1;
  setup.peak_bytes = uint64_t{8} << 20;
  setup.peak_blocks = 1024;
  setup.pool_bytes = uint64_t{16} << 20;
  setup.populate = arguments.populate ? 1 : 0;
  setup.options = arguments.options;
  setup.error = error;
  setup.error_bytes = sizeof(error);
  if (adapter->init(&setup) != 0) return fail(error);
  if (!works(*adapter)) return fail(std::string(adapter->name) + " returned no memory for a small block");
  print(*adapter);
  return 0;
}
