// Long logs of every form that blockyard reads, made of real journals, to be read again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace blockyard::bench {

/// The forms that write_log() knows: "text" first, then those of other tools.
std::span<const std::string_view> made_forms();

/// Writes `lines` lines of events of a form to `path`: the journals in turn, over and over, with times that go on and
/// addresses that differ from round to round. mtrace's and heaptrack's lines name one caller.
void write_log(std::string_view form, const std::string& path, const std::vector<std::string>& journals,
               std::uint64_t lines);

}  // namespace blockyard::bench
