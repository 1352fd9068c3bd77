// Sites and time lines in the forms that other tools read, one function for each form.
#pragma once

#include <string>
#include <string_view>

#include "journal/output_file.hpp"
#include "journal/progress.hpp"
#include "sites/analysis.hpp"

namespace blockyard::sites {

/// What a stack weighs in the forms that have one figure for each.
enum class Weight { allocations, bytes, end_blocks, end_bytes };

/// A gzipped protobuf of pprof when the sink's name ends in .gz: samples of alloc_objects, alloc_space, inuse_objects
/// and inuse_space, where "in use" is what is alive at the end. `sites` must be grouped by stack, here and below.
void write_pprof(const Sites& sites, journal::ByteSink& out);

/// Lines `root;caller;function WEIGHT`, as flame graph scripts read them. Stacks that look the same are one line.
void write_folded(const Sites& sites, Weight weight, journal::ByteSink& out);

/// Speedscope's JSON, with a profile for each Weight.
void write_speedscope(const Sites& sites, journal::ByteSink& out);

/// Chrome's trace events, which Perfetto opens: the frames of the frame thread, phases, and memory and calls over time.
/// Needs no call stacks. Reads the journal twice.
void write_trace(const std::string& path, const Options& options, journal::ByteSink& out,
                 const journal::Progress& progress);

/// The text where it is UTF-8; otherwise with '?' for each byte beyond ASCII.
std::string utf8(std::string_view text);

/// The figure of a site.
std::uint64_t weight_of(const Totals& totals, Weight weight);

}  // namespace blockyard::sites
