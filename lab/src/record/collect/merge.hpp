// Merges the lanes of all threads into one order by their stamps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "record/collect/lane.hpp"

namespace blockyard::record {

/// Where merged records go.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void apply(std::uint32_t thread, std::uint64_t stamp, const std::uint64_t* record) = 0;
  /// Whether this record may come next: an allocation of a live address may not, nor a free of one that is not live.
  /// Asked only to order records with equal stamps.
  virtual bool is_possible(const std::uint64_t* record) const = 0;
  /// The record comes soon: what it needs can be brought into the cache.
  virtual void prefetch(const std::uint64_t*) const {}
};

/// Applies records with stamps below `watermark`, oldest first, until none is left or `budget` records were applied.
/// No lane may later receive a record with a stamp below the watermark. Returns the number of records applied.
std::size_t merge(std::span<Lane* const> lanes, std::uint64_t watermark, std::size_t budget, RecordSink& sink);

}  // namespace blockyard::record
