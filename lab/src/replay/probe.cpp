// blockyard-probe: starts one allocator, allocates a few blocks and says what it is.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstring>
#include <string>

#include "journal/command.hpp"
#include "journal/json_text.hpp"
#include "replay/run/adapter_host.hpp"

namespace {

namespace journal = blockyard::journal;

// A block of each kind and size, written to and freed; some are large enough to get their own mapping.
bool works(const by_adapter& adapter) {
  const auto release = [&adapter](void* block, std::size_t size, std::size_t alignment) {
    if ((adapter.flags & BY_ADAPTER_SIZED_FREE) != 0) {
      adapter.free_sized(block, size, alignment);
    } else {
      adapter.free(block);
    }
  };
  if (adapter.thread_start != nullptr) adapter.thread_start();
  for (std::size_t size = 16; size <= std::size_t{1} << 18; size *= 8) {
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

journal::Json json_of(const by_adapter& adapter) {
  constexpr struct {
    std::uint32_t bit;
    const char* name;
  } flag_names[] = {{BY_ADAPTER_NEEDS_POOL, "needs_pool"},
                    {BY_ADAPTER_NEEDS_LOCK, "needs_lock"},
                    {BY_ADAPTER_SIZED_FREE, "sized_free"},
                    {BY_ADAPTER_EMULATES_ZEROED, "emulates_zeroed"},
                    {BY_ADAPTER_EMULATES_REALLOCATE, "emulates_reallocate"},
                    {BY_ADAPTER_EMULATES_ALIGNED, "emulates_aligned"}};
  auto flags = journal::Json::array();
  for (const auto& [bit, name] : flag_names) {
    if ((adapter.flags & bit) != 0) flags.push_back(name);
  }
  return {{"name", adapter.name}, {"version", adapter.version}, {"flags", flags}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Loads one adapter, allocates and frees a few blocks, and prints the allocator's name, version and flags.",
      "blockyard-probe");
  std::string path;
  std::string options;
  by_adapter_setup setup{};
  app.add_option("adapter", path, "the allocator's adapter")->required();
  app.add_option("--options", options, "key=value,key=value for the adapter");
  bool populate = false;
  app.add_flag("--populate", populate, "the prefaulted variant");
  return journal::command::run(app, argc, argv, [&] {
    const blockyard::replay::LoadedAdapter loaded = blockyard::replay::load_adapter(path);
    setup.threads = 1;
    setup.peak_bytes = std::uint64_t{8} << 20;
    setup.peak_blocks = 1024;
    setup.pool_bytes = std::uint64_t{16} << 20;
    setup.populate = populate ? 1 : 0;
    setup.options = options.c_str();
    if (const std::string error = loaded.start(setup); !error.empty()) throw journal::Error(error);
    loaded.check_functions();
    if (!works(*loaded.adapter)) {
      throw journal::Error(std::string(loaded.adapter->name) + " returned no memory for a small block");
    }
    journal::command::print(journal::json_text(json_of(*loaded.adapter), -1));
  });
}
