#include "journal/block_decoder.hpp"

#include <zstd.h>

#include <algorithm>
#include <new>

namespace blockyard::journal {

using format::Column;

namespace {

// 4,096 events of 72 bytes stay in a second-level cache while the consumer walks them.
constexpr std::uint32_t batch = 4096;
constexpr auto last_kind = static_cast<std::uint64_t>(Kind::phase_mark);
constexpr std::uint64_t most_alignment_log2 = 31;

constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace

BlockDecoder::BlockDecoder() : decompressor_(ZSTD_createDCtx()) {
  if (decompressor_ == nullptr) throw std::bad_alloc();
  plane_.resize(format::block_events);
  events_.resize(batch);
}

BlockDecoder::~BlockDecoder() { ZSTD_freeDCtx(decompressor_); }

void BlockDecoder::fail(const std::string& what) const { throw Error(where_ + ": " + what); }

void BlockDecoder::decode(std::string_view payload, const Header& header, const std::string& where) {
  where_ = where;
  if (payload.size() < sizeof head_) fail("the block is too short for its head");
  head_ = format::get<format::BlockHead>(payload, 0);
  if (head_.events == 0 || head_.events > format::block_events) {
    fail("the block claims " + std::to_string(head_.events) + " events; 1 to 65,536 are possible");
  }
  if (head_.planes > 8 * 255 || payload.size() - sizeof head_ < head_.planes * sizeof(format::PlaneEntry)) {
    fail("the block's plane directory does not fit into it");
  }
  threads_ = header.threads.size();
  names_ = header.names.size();
  has_addresses_ = header.has_addresses;
  done_ = 0;
  time_ns_ = head_.base_time_ns;
  next_block_ = head_.first_block;
  address_ = 0;
  counts_.fill(0);
  at_.fill(0);
  present_.fill(false);
  for (const auto every : {Column::kind, Column::thread, Column::time, Column::site, Column::tag}) {
    counts_[static_cast<std::size_t>(every)] = head_.events;
  }
  // How many values the other columns have follows from the kinds, which a writer puts first.
  read_planes(payload, Column::kind);
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
  counts_[static_cast<std::size_t>(Column::size)] = given;
  counts_[static_cast<std::size_t>(Column::address)] = given;
  counts_[static_cast<std::size_t>(Column::back)] = count(Kind::free) + count(Kind::reallocate);
  counts_[static_cast<std::size_t>(Column::duration)] = count(Kind::reallocate);
  counts_[static_cast<std::size_t>(Column::alignment)] = count(Kind::allocate_aligned);
  read_planes(payload, Column::thread);
}

// Reads the kind column, or all others: both passes go through the same directory.
void BlockDecoder::read_planes(std::string_view payload, Column only_kind_or_rest) {
  std::size_t at = sizeof head_ + head_.planes * sizeof(format::PlaneEntry);
  for (std::uint32_t i = 0; i < head_.planes; ++i) {
    const auto entry = format::get<format::PlaneEntry>(payload, sizeof head_ + i * sizeof(format::PlaneEntry));
    if (payload.size() - at < entry.bytes) fail("a plane is longer than the block that holds it");
    const std::string_view bytes = payload.substr(at, entry.bytes);
    at += entry.bytes;
    const std::size_t slot = entry.column;
    const bool is_kind = slot == static_cast<std::size_t>(Column::kind);
    if (is_kind != (only_kind_or_rest == Column::kind)) continue;
    if (slot == 0 || slot >= format::column_slots)
      continue;  // a newer writer's column: it changes nothing that this reader reads
    if (entry.plane > 7) fail("a column has a ninth byte plane");
    const std::uint32_t count = counts_[slot];
    std::string_view values = bytes;
    if (static_cast<format::Codec>(entry.codec) == format::Codec::zstd) {
      const std::size_t size = ZSTD_decompressDCtx(decompressor_, plane_.data(), count, bytes.data(), bytes.size());
      if (ZSTD_isError(size) != 0 || size != count) fail("a plane does not decompress to one byte for each value");
      values = std::string_view(plane_.data(), size);
    } else if (static_cast<format::Codec>(entry.codec) != format::Codec::stored || bytes.size() != count) {
      fail("a plane is stored in an unknown way; a newer blockyard may read it");
    }
    auto& column = columns_[slot];
    if (!present_[slot]) {
      column.assign(count, 0);
      present_[slot] = true;
    }
    const unsigned shift = 8U * entry.plane;
    for (std::uint32_t v = 0; v < count; ++v) {
      column[v] |= static_cast<std::uint64_t>(static_cast<unsigned char>(values[v])) << shift;
    }
  }
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
        address_ += static_cast<std::uint64_t>(unzigzag(take(Column::address)));
        event.address = address_;
      }
    }
    const std::uint64_t site = take(Column::site);
    event.site = site == 0 ? no_site : static_cast<std::uint32_t>(site - 1);
    event.tag = static_cast<std::uint32_t>(take(Column::tag));
    if (event.kind == Kind::phase_mark && event.tag >= names_) refuse(" begins a phase that has no name");
    events_[i] = event;
  }
  done_ += count;
  return {events_.data(), count};
}

}  // namespace blockyard::journal
