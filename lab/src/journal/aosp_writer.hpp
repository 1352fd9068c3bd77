// Writes events in the form of Android's memory_replay.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "journal/output_file.hpp"
#include "journal/text_writer.hpp"

namespace blockyard::journal {

/// A paced journal's lines have START_NS and END_NS, which are equal but for reallocs: a journal keeps no other
/// durations. Marks, tags, call stacks and the bound of the preamble have no place; finish() counts them.
class AospWriter final : public EventWriter {
 public:
  AospWriter(std::unique_ptr<ByteSink> sink, const Header& header)
      : sink_(std::move(sink)), pointers_(header.has_addresses), is_paced_(header.paced) {}

  void add(const Event& event, const Header& header) override;
  void finish(const Header& header, std::vector<std::string>& notes) override;

 private:
  void put(std::string_view text) { text_ += text; }
  void put_decimal(std::uint64_t value);
  void put_pointer(std::uint64_t value);

  std::unique_ptr<ByteSink> sink_;
  WrittenPointers pointers_;
  WrittenThreads threads_;
  bool is_paced_;
  std::uint64_t marks_ = 0;
  std::uint64_t described_ = 0;  ///< events with a tag or a call stack
  std::string text_;
};

}  // namespace blockyard::journal
