#include "journal/block_encoder.hpp"

#include <zstd.h>

#include <bit>
#include <new>

namespace blockyard::journal {

using format::Column;

namespace {

// docs/reference/journal-format.md says what the level was chosen by.
constexpr int compression_level = 1;

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

}  // namespace

BlockEncoder::BlockEncoder() : compressor_(ZSTD_createCCtx()) {
  if (compressor_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(compressor_, ZSTD_c_compressionLevel, compression_level);
  for (auto& values : columns_) values.values = std::make_unique_for_overwrite<std::uint64_t[]>(format::block_events);
  plane_.resize(format::block_events);
}

BlockEncoder::~BlockEncoder() { ZSTD_freeCCtx(compressor_); }

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
      push(Column::address, zigzag(static_cast<std::int64_t>(event.address - last_address_)));
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

void BlockEncoder::put_plane(Column from, unsigned plane) {
  const Values& values = column(from);
  for (std::uint32_t i = 0; i < values.count; ++i) plane_[i] = static_cast<char>(values.values[i] >> (8 * plane));
  const std::size_t at = planes_.size();
  planes_.resize(at + ZSTD_compressBound(values.count));
  const std::size_t compressed =
      ZSTD_compress2(compressor_, planes_.data() + at, planes_.size() - at, plane_.data(), values.count);
  const bool smaller = ZSTD_isError(compressed) == 0 && compressed < values.count;
  const std::size_t bytes = smaller ? compressed : values.count;
  planes_.resize(at + bytes);
  if (!smaller) planes_.replace(at, bytes, plane_, 0, bytes);
  directory_.push_back({static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(plane),
                        static_cast<std::uint8_t>(smaller ? format::Codec::zstd : format::Codec::stored), 0,
                        static_cast<std::uint32_t>(bytes)});
}

const std::string& BlockEncoder::encode() {
  directory_.clear();
  planes_.clear();
  for (const auto sparse : {Column::site, Column::tag}) {
    Values& values = column(sparse);
    while (values.count != 0 && values.count < events_) values.values[values.count++] = 0;
  }
  for (std::size_t slot = 1; slot < format::column_slots; ++slot) {
    const Values& values = columns_[slot];
    std::uint64_t used = 0;
    for (std::uint32_t i = 0; i < values.count; ++i) used |= values.values[i];
    for (unsigned plane = 0; plane < 8; ++plane) {
      if ((used >> (8 * plane) & 0xFF) != 0) put_plane(static_cast<Column>(slot), plane);
    }
  }
  head_.events = events_;
  head_.planes = static_cast<std::uint32_t>(directory_.size());
  payload_.clear();
  format::put(payload_, head_);
  for (const auto& entry : directory_) format::put(payload_, entry);
  payload_ += planes_;
  return payload_;
}

}  // namespace blockyard::journal
