#include "locality/driven.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "blockyard/block_allocator.hpp"
#include "blockyard/lifetime.hpp"
#include "clock/clock.hpp"
#include "journal/event.hpp"
#include "replay/run/adapter_host.hpp"

namespace blockyard::locality {
namespace {

// Every allocator runs in the same loop; calls that a program would inline are inlined.
template <class Allocate, class Free>
Pass time_loops(const Request& request, void** blocks, Allocate&& allocate_one, Free&& free_one) {
  const double ticks_per_ns = clock::ticks_per_ns();
  const std::uint64_t begun = clock::ticks_fenced();
  for (std::size_t i = 0; i < request.count; ++i) {
    blocks[i] = allocate_one();
  }
  const std::uint64_t allocated = clock::ticks_fenced();
  if (std::find(blocks, blocks + request.count, nullptr) != blocks + request.count) {
    throw journal::Error("the allocator had no memory for " + std::to_string(request.count) + " blocks of " +
                         std::to_string(request.size) + " bytes");
  }
  const std::uint64_t freeing = clock::ticks_fenced();
  for (std::size_t i = 0; i < request.count; ++i) {
    free_one(blocks[i]);
  }
  const std::uint64_t freed = clock::ticks_fenced();
  return {static_cast<double>(allocated - begun) / ticks_per_ns, static_cast<double>(freed - freeing) / ticks_per_ns};
}

// The same allocations for every allocator: 20,000 blocks, half of which are freed in a scrambled order. The rest is
// never freed, as in a program that is still running.
template <class Allocate, class Free>
void age_by(Allocate&& allocate_one, Free&& free_one) {
  constexpr std::size_t count = 20'000;
  std::mt19937 random(1);
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < count; ++i) {
    // Mostly small ones. Uses the raw generator, because the library's distributions differ between systems.
    const std::size_t size = 1 + random() % (random() % 8 == 0 ? 1024 : 64);
    if (void* const block = allocate_one(size)) {
      blocks.push_back(block);
    }
  }
  for (std::size_t i = blocks.size(); i > 1; --i) {
    std::swap(blocks[i - 1], blocks[random() % i]);
  }
  for (std::size_t i = 0; i < blocks.size() / 2; ++i) {
    free_one(blocks[i]);
  }
}

template <Lifetime which>
class DrivenLifetime : public Driven {
 public:
  explicit DrivenLifetime(std::string name) : name_(std::move(name)) {}

  void age(const Request& request) override {
    if constexpr (which == Lifetime::persistent) {
      age_by([&](std::size_t size) { return allocate(size, request.alignment, which); },
             [](void* block) { deallocate(block, which); });
    }
  }
  Pass run(const Request& request, void** blocks) override {
    const Pass pass = time_loops(
        request, blocks, [&] { return allocate(request.size, request.alignment, which); },
        [](void* block) { deallocate(block, which); });
    by_thread_end_frame();
    return pass;
  }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string version() const override { return BLOCKYARD_VERSION; }

 private:
  std::string name_;
};

class DrivenBlocks : public Driven {
 public:
  explicit DrivenBlocks(const Request& request) : blocks_(request.size, request.alignment) {}

  void age(const Request&) override {
    age_by([&](std::size_t) { return blocks_.allocate(); }, [&](void* block) { blocks_.free(block); });
  }
  Pass run(const Request& request, void** blocks) override {
    return time_loops(
        request, blocks, [&] { return blocks_.allocate(); }, [&](void* block) { blocks_.free(block); });
  }
  [[nodiscard]] std::string name() const override { return "block"; }
  [[nodiscard]] std::string version() const override { return BLOCKYARD_VERSION; }

 private:
  BlockAllocator blocks_;
};

class DrivenAdapter : public Driven {
 public:
  DrivenAdapter(const Choice& choice, const Request& request) : loaded_(replay::load_adapter(choice.what)) {
    by_adapter_setup setup{};
    setup.threads = 1;
    setup.peak_bytes = request.count * request.size;
    setup.peak_blocks = request.count;
    // A pool with room for any header and alignment that an allocator may want.
    setup.pool_bytes = (std::size_t{64} << 20) + request.count * (request.size + request.alignment + 64) * 2;
    setup.populate = choice.populate;
    setup.options = choice.options.c_str();
    if (const std::string error = loaded_.start(setup); !error.empty()) {
      throw journal::Error("the allocator " + std::string(loaded_.adapter->name) + " did not start: " + error);
    }
    loaded_.check_functions();
    if (loaded_.adapter->thread_start != nullptr) {
      loaded_.adapter->thread_start();
    }
  }

  void age(const Request&) override {
    const by_adapter& adapter = *loaded_.adapter;
    // An allocator that wants the size back needs each block's own: the block holds it.
    age_by(
        [&](std::size_t size) {
          const std::size_t room = std::max(size, sizeof(std::size_t));
          void* const block = adapter.allocate(room);
          if (block != nullptr) {
            std::memcpy(block, &room, sizeof room);
          }
          return block;
        },
        [&](void* block) {
          std::size_t room;
          std::memcpy(&room, block, sizeof room);
          (adapter.flags & BY_ADAPTER_SIZED_FREE) != 0 ? adapter.free_sized(block, room, alignof(std::max_align_t))
                                                       : adapter.free(block);
        });
  }

  Pass run(const Request& request, void** blocks) override {
    const by_adapter& adapter = *loaded_.adapter;
    const bool sized = (adapter.flags & BY_ADAPTER_SIZED_FREE) != 0;
    // For alignments that malloc gives anyway, calls malloc, as a program would.
    if (request.alignment <= alignof(std::max_align_t)) {
      return sized ? time_loops(
                         request, blocks, [&] { return adapter.allocate(request.size); },
                         [&](void* block) { adapter.free_sized(block, request.size, alignof(std::max_align_t)); })
                   : time_loops(
                         request, blocks, [&] { return adapter.allocate(request.size); },
                         [&](void* block) { adapter.free(block); });
    }
    return time_loops(
        request, blocks, [&] { return adapter.allocate_aligned(request.alignment, request.size); },
        [&](void* block) { sized ? adapter.free_sized(block, request.size, request.alignment) : adapter.free(block); });
  }
  [[nodiscard]] std::string name() const override { return loaded_.adapter->name; }
  [[nodiscard]] std::string version() const override { return loaded_.adapter->version; }

 private:
  replay::LoadedAdapter loaded_;
};

}  // namespace

std::unique_ptr<Driven> start(const Choice& choice, const Request& request) {
  if (choice.what == "temp") {
    if (choice.temp_region != 0 && by_temp_configure(choice.temp_region, 0) != 0) {
      throw journal::Error("a temp region has 64 bytes to 1 GiB");
    }
    return std::make_unique<DrivenLifetime<Lifetime::temp>>("temp");
  }
  if (choice.what == "temp-job") {
    return std::make_unique<DrivenLifetime<Lifetime::temp_job>>("temp-job");
  }
  if (choice.what == "persistent") {
    return std::make_unique<DrivenLifetime<Lifetime::persistent>>("persistent");
  }
  if (choice.what == "block") {
    return std::make_unique<DrivenBlocks>(request);
  }
  return std::make_unique<DrivenAdapter>(choice, request);
}

}  // namespace blockyard::locality
