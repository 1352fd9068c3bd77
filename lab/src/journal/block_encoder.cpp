#include "journal/block_encoder.hpp"

#include <bit>

namespace blockyard::journal {

using format::Column;

namespace {

// docs/reference/journal-format.md says what the level was chosen by.
constexpr int compression_level = 1;

}  // namespace

BlockEncoder::BlockEncoder() : planes_(compression_level) {
  for (auto& values : columns_) values.values = std::make_unique_for_overwrite<std::uint64_t[]>(format::block_events);
}

void BlockEncoder::begin(std::uint64_t first_event, std::uint64_t first_block, std::uint64_t base_time_ns) {
  for (auto& values : columns_) values.count = 0;
  head_ = {first_event, first_block, base_time_ns, 0, 0};
  events_ = 0;
  next_block_ = first_block;
  last_time_ns_ = base_time_ns;
  last_address_ = 0;
}

void BlockEncoder::add(const Event& event, bool keep_address) {
  push(Column::kind, static_cast<std::uint64_t>(event.kind));
  push(Column::thread, event.thread);
  push(Column::time, event.time_ns - last_time_ns_);
  last_time_ns_ = event.time_ns;
  if (event.kind == Kind::free) push(Column::back, next_block_ - event.block);
  if (gives_block(event.kind)) {
    push(Column::size, event.size);
    if (event.kind == Kind::reallocate) {
      push(Column::back, next_block_ - event.old_block);
      push(Column::duration, event.duration_ns);
    } else if (event.kind == Kind::allocate_aligned) {
      push(Column::alignment, static_cast<std::uint64_t>(std::countr_zero(event.alignment)));
    }
    if (keep_address) {
      push(Column::address, format::zigzag(static_cast<std::int64_t>(event.address - last_address_)));
      last_address_ = event.address;
    }
    ++next_block_;
  }
  if (event.site != no_site) push_sparse(Column::site, std::uint64_t{event.site} + 1);
  if (event.tag != 0) push_sparse(Column::tag, event.tag);
  ++events_;
}

// Most journals have no sites and no tags: the zeros before the first value are filled in when one comes.
void BlockEncoder::push_sparse(Column to, std::uint64_t value) {
  Values& values = column(to);
  while (values.count < events_) values.values[values.count++] = 0;
  values.values[values.count++] = value;
}

// A thread's stacks resemble its last ones, and other threads' events between them would hide that.
void BlockEncoder::put_sites() {
  const Values& sites = column(Column::site);
  if (sites.count == 0) return;
  const Values& threads = column(Column::thread);
  site_of_thread_.assign(2, 0);
  for (std::uint32_t i = 0; i < events_; ++i) {
    const std::size_t next = threads.values[i] + 1;
    if (site_of_thread_.size() <= next) site_of_thread_.resize(next + 1);
    ++site_of_thread_[next];
  }
  for (std::size_t i = 1; i < site_of_thread_.size(); ++i) site_of_thread_[i] += site_of_thread_[i - 1];
  sites_.resize(events_);
  for (std::uint32_t i = 0; i < events_; ++i) sites_[site_of_thread_[threads.values[i]]++] = sites.values[i];
  planes_.put(static_cast<std::uint8_t>(Column::site), sites_);
}

void BlockEncoder::encode() {
  planes_.begin();
  for (const auto sparse : {Column::site, Column::tag}) {
    Values& values = column(sparse);
    while (values.count != 0 && values.count < events_) values.values[values.count++] = 0;
  }
  for (std::size_t slot = 1; slot < format::column_slots; ++slot) {
    if (slot == static_cast<std::size_t>(Column::site)) {
      put_sites();
      continue;
    }
    const Values& values = columns_[slot];
    planes_.put(static_cast<std::uint8_t>(slot), {values.values.get(), values.count});
  }
  head_.events = events_;
  head_.planes = planes_.planes();
  payload_.clear();
  format::put(payload_, head_);
  planes_.append_to(payload_);
}

}  // namespace blockyard::journal
