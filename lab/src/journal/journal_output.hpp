// A journal that a tool writes: .byj or text by its name, and only there when complete.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/event.hpp"
#include "journal/output_file.hpp"
#include "journal/text_writer.hpp"
#include "journal/writer.hpp"

namespace blockyard::journal {

enum class OutputForm { by_name, aosp };

struct OutputOptions {
  bool overwrite = false;
  OutputForm form = OutputForm::by_name;
  bool addresses = false;  ///< .byj: keep Event::address
  TextStyle text;
};

/// `path` ends in .byj, or it is text of the wanted form (.txt, .journal, .log or no ending, compressed when .zst or
/// .gz follows). One thread at a time; throws Error.
class JournalOutput {
 public:
  JournalOutput(const std::string& path, const std::string& input, const Header& header, const OutputOptions& options);
  /// The output's call stacks: those of an event come before it, names before finish().
  Stacks& stacks() { return byj_ ? byj_->stacks() : text_stacks_; }
  /// `header` is the source's as it stands now.
  void add(const Event& event, const Header& header);
  /// `header` is the complete one.
  void finish(const Header& header);
  std::uint64_t events() const { return events_; }
  /// After finish(): the bytes of the file.
  std::uint64_t bytes() const { return bytes_; }
  /// After finish(): what the form could not say, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  OutputFile file_;
  std::optional<Writer> byj_;
  Stacks text_stacks_;
  std::unique_ptr<EventWriter> text_;
  std::string path_;
  std::uint64_t events_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace blockyard::journal
