#include "journal/block_decoder.hpp"

#include <algorithm>

namespace blockyard::journal {

using format::Column;

namespace {

// 4,096 events of 72 bytes stay in a second-level cache while the consumer walks them.
constexpr std::uint32_t batch = 4096;
constexpr auto last_kind = static_cast<std::uint64_t>(Kind::phase_mark);
constexpr std::uint64_t most_alignment_log2 = 31;

}  // namespace

BlockDecoder::BlockDecoder() : events_(batch) {}

void BlockDecoder::fail(const std::string& what) const { throw Error(where_ + ": " + what); }

void BlockDecoder::read(Column column, std::uint32_t count) {
  const auto slot = static_cast<std::size_t>(column);
  present_[slot] = planes_.read(static_cast<std::uint8_t>(column), count, columns_[slot]);
  at_[slot] = 0;
}

// They stand thread by thread.
void BlockDecoder::read_sites() {
  read(Column::site, head_.events);
  if (!present_[static_cast<std::size_t>(Column::site)]) return;
  site_of_thread_.assign(threads_ + 1, 0);
  const auto& threads = columns_[static_cast<std::size_t>(Column::thread)];
  const bool one_thread = !present_[static_cast<std::size_t>(Column::thread)];
  for (std::uint32_t i = 0; i < head_.events; ++i) {
    const std::uint64_t thread = one_thread ? 0 : threads[i];
    if (thread < threads_) ++site_of_thread_[thread + 1];  // next() refuses others
  }
  for (std::size_t i = 1; i <= threads_; ++i) site_of_thread_[i] += site_of_thread_[i - 1];
}

void BlockDecoder::decode(std::string_view payload, const Header& header, std::uint32_t sites, bool forgive_sites,
                          const std::string& where) {
  where_ = where;
  if (payload.size() < sizeof head_) fail("the block is too short for its head");
  head_ = format::get<format::BlockHead>(payload, 0);
  if (head_.events == 0 || head_.events > format::block_events) {
    fail("the block claims " + std::to_string(head_.events) + " events; 1 to 65,536 are possible");
  }
  planes_.begin(payload, sizeof head_, head_.planes, where);
  threads_ = header.threads.size();
  names_ = header.names.size();
  sites_ = sites;
  forgive_sites_ = forgive_sites;
  has_addresses_ = header.has_addresses;
  done_ = 0;
  time_ns_ = head_.base_time_ns;
  next_block_ = head_.first_block;
  address_ = 0;
  // How many values the other columns have follows from the kinds.
  read(Column::kind, head_.events);
  const auto& kinds = columns_[static_cast<std::size_t>(Column::kind)];
  std::array<std::uint32_t, last_kind + 1> of_kind{};
  if (present_[static_cast<std::size_t>(Column::kind)]) {
    for (std::uint32_t i = 0; i < head_.events; ++i) {
      if (kinds[i] > last_kind) fail("event " + std::to_string(head_.first_event + i) + " has an unknown kind");
      ++of_kind[kinds[i]];
    }
  } else {
    of_kind[0] = head_.events;
  }
  const auto count = [&of_kind](Kind kind) { return of_kind[static_cast<std::size_t>(kind)]; };
  const std::uint32_t given =
      count(Kind::allocate) + count(Kind::allocate_zeroed) + count(Kind::allocate_aligned) + count(Kind::reallocate);
  for (const auto every : {Column::thread, Column::time, Column::tag}) read(every, head_.events);
  read_sites();
  read(Column::size, given);
  read(Column::address, given);
  read(Column::back, count(Kind::free) + count(Kind::reallocate));
  read(Column::duration, count(Kind::reallocate));
  read(Column::alignment, count(Kind::allocate_aligned));
}

std::span<const Event> BlockDecoder::next() {
  const std::uint32_t count = std::min(batch, head_.events - done_);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto refuse = [&](const std::string& what) {
      fail("event " + std::to_string(head_.first_event + done_ + i) + what);
    };
    Event event;
    event.kind = static_cast<Kind>(take(Column::kind));
    const std::uint64_t delta = take(Column::time);
    if (delta > ~time_ns_) refuse(" has a time beyond 64 bits");
    time_ns_ += delta;
    event.time_ns = time_ns_;
    const std::uint64_t thread = take(Column::thread);
    if (thread >= threads_) refuse(" names a thread that the journal never introduced");
    event.thread = static_cast<std::uint32_t>(thread);
    if (takes_block(event.kind)) {
      const std::uint64_t back = take(Column::back);
      if (back == 0 || back > next_block_) refuse(" frees a block that was never given");
      (event.kind == Kind::free ? event.block : event.old_block) = next_block_ - back;
    }
    if (gives_block(event.kind)) {
      event.size = take(Column::size);
      if (event.size > most_block_bytes) refuse(" " + asks_too_much(event.size));
      event.block = next_block_++;
      if (event.kind == Kind::reallocate) event.duration_ns = take(Column::duration);
      if (event.kind == Kind::allocate_aligned) {
        const std::uint64_t alignment = take(Column::alignment);
        if (alignment > most_alignment_log2) refuse(" has an impossible alignment");
        event.alignment = std::uint32_t{1} << alignment;
      }
      if (has_addresses_) {
        address_ += static_cast<std::uint64_t>(format::unzigzag(take(Column::address)));
        event.address = address_;
      }
    }
    const auto site_slot = static_cast<std::size_t>(Column::site);
    const std::uint64_t site = present_[site_slot] ? columns_[site_slot][site_of_thread_[thread]++] : 0;
    if (site > sites_ && !forgive_sites_) refuse(" has a call stack that the journal does not hold");
    event.site = site == 0 || site > sites_ ? no_site : static_cast<std::uint32_t>(site - 1);
    const std::uint64_t tag = take(Column::tag);
    if (tag >= names_)
      refuse(event.kind == Kind::phase_mark ? " begins a phase that has no name" : " has a tag that has no name");
    event.tag = static_cast<std::uint32_t>(tag);
    events_[i] = event;
  }
  done_ += count;
  return {events_.data(), count};
}

}  // namespace blockyard::journal
