#include "journal/walker.hpp"

#include <bit>
#include <cinttypes>
#include <cstdio>

namespace blockyard::journal {

namespace {
std::string address_text(std::uint64_t address) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%" PRIX64, address);
  return text;
}
}  // namespace

void Walker::fail(const std::string& what) const { throw Error("event " + std::to_string(events_) + ": " + what); }

void Walker::add(const Event& event, const Header& header, const Stacks& stacks) {
  if (event.time_ns < time_ns_) {
    fail("the time goes back from " + std::to_string(time_ns_) + " to " + std::to_string(event.time_ns) + " ns");
  }
  time_ns_ = event.time_ns;
  if (event.thread >= header.threads.size())
    fail("it names thread " + std::to_string(event.thread) + ", which does not exist");
  if (event.kind > Kind::phase_mark) fail("its kind is unknown");
  if (event.tag >= header.names.size()) {
    fail(event.kind == Kind::phase_mark ? "it begins a phase that has no name" : "it has a tag that has no name");
  }
  if (event.site != no_site && event.site >= stacks.nodes().size()) {
    fail("its call stack " + std::to_string(event.site) + " does not exist");
  }
  if (events_ < header.preamble_events && (!gives_block(event.kind) || event.kind == Kind::reallocate)) {
    fail("it is no allocation, though it belongs to the preamble of " + std::to_string(header.preamble_events) +
         " events");
  }
  if (event.kind == Kind::free) release(event.block);
  if (event.kind == Kind::reallocate) release(event.old_block);
  if (gives_block(event.kind)) give(event, header.has_addresses);
  ++events_;
}

void Walker::release(std::uint64_t block) {
  if (block >= blocks_) fail("a free of nothing: block " + std::to_string(block) + " was never allocated");
  Live gone{};
  if (!live_.take(block + 1, gone)) fail("block " + std::to_string(block) + " is freed twice");
  std::uint64_t ignored = 0;
  if (gone.address != 0) addresses_.take(gone.address, ignored);
}

void Walker::give(const Event& event, bool has_addresses) {
  if (event.block != blocks_) {
    fail("it gives block " + std::to_string(event.block) + " where " + std::to_string(blocks_) + " is next");
  }
  if (event.kind == Kind::allocate_aligned && !std::has_single_bit(event.alignment))
    fail("its alignment is no power of two");
  const std::uint64_t address = has_addresses ? event.address : 0;
  if (has_addresses && address == 0) fail("block " + std::to_string(event.block) + " has no address");
  if (address != 0 && !addresses_.insert(address, event.block)) {
    const std::uint64_t other = *addresses_.find(address);
    fail("address " + address_text(address) + " is live twice: block " + std::to_string(other) +
         ", allocated by event " + std::to_string(live_.find(other + 1)->event) + ", still lives there");
  }
  live_.insert(event.block + 1, {address, events_});
  ++blocks_;
}

}  // namespace blockyard::journal
