// blockyard-locality: allocates many equal blocks from one allocator, frees them, and prints times and addresses.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/bits.hpp"
#include "base/pages.hpp"
#include "clock/clock.hpp"
#include "journal/command.hpp"
#include "locality/driven.hpp"

namespace {

using namespace blockyard::locality;
using blockyard::journal::Error;
namespace clock = blockyard::clock;
namespace command = blockyard::journal::command;

// A pass is short: so many warm ones give a median that a single interrupt does not change.
constexpr int default_warm_passes = 31;

// Outside every heap, and touched: the loop that fills it must not fault.
void** make_room(std::size_t count) {
  const std::size_t bytes = blockyard::base::align_up(count * sizeof(void*), std::size_t{4096});
  void* const room = blockyard::base::reserve_pages(bytes, 4096);
  if (room == nullptr) throw std::bad_alloc();
  std::fill_n(static_cast<void**>(room), count, room);
  return static_cast<void**>(room);
}

nlohmann::json measure(const Choice& choice, const Request& request, int warm_passes, bool aged) {
  clock::ticks_per_ns();  // first: it takes milliseconds, in which caches lose what is prepared below
  void** const cold_blocks = make_room(request.count);
  void** const warm_blocks = make_room(request.count);
  const std::unique_ptr<Driven> driven = start(choice, request);
  if (aged) driven->age(request);
  const Pass cold = driven->run(request, cold_blocks);
  std::vector<Pass> warm(static_cast<std::size_t>(warm_passes));
  for (Pass& pass : warm) pass = driven->run(request, warm_blocks);

  nlohmann::json result;
  result["allocator"] = driven->name();
  result["version"] = driven->version();
  result["cold"] = {{"allocate_ns", cold.allocate_ns}, {"free_ns", cold.free_ns}};
  for (const Pass& pass : warm) {
    result["warm"]["allocate_ns"].push_back(pass.allocate_ns);
    result["warm"]["free_ns"].push_back(pass.free_ns);
  }
  for (std::size_t i = 0; i < request.count; ++i) {
    result["addresses"].push_back(reinterpret_cast<std::uintptr_t>(cold_blocks[i]));
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Allocates equal blocks from one allocator, frees them, and prints times and addresses as JSON.",
               "blockyard-locality");
  Choice choice{};
  Request request{1000, 4, 4};
  int warm_passes = default_warm_passes;
  bool aged = false;
  app.add_option("allocator", choice.what, "temp, temp-job, persistent, block, or the path of an adapter")->required();
  app.add_option("--options", choice.options, "the adapter's options");
  app.add_flag("--populate", choice.populate, "have the adapter populate memory first");
  app.add_option("--count", request.count, "how many blocks")
      ->check(CLI::Range(std::size_t{2}, std::size_t{10'000'000}));
  app.add_option("--size", request.size, "bytes of a block")->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
  app.add_option("--align", request.alignment, "alignment of a block")
      ->check(CLI::Range(std::size_t{1}, std::size_t{16384}));
  app.add_option("--temp-region", choice.temp_region, "bytes of the temp region, which then does not grow");
  app.add_flag("--aged", aged, "let many blocks of many sizes come and go first");
  app.add_option("--warm", warm_passes, "passes after the first")->check(CLI::Range(1, 1000));
  const auto print = [&] {
    if (!std::has_single_bit(request.alignment)) {
      throw Error("the alignment " + std::to_string(request.alignment) + " is no power of two");
    }
    command::print(measure(choice, request, warm_passes, aged).dump());
  };
  return command::run(app, argc, argv, print, "not enough memory for so many blocks");
}
