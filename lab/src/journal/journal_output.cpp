#include "journal/journal_output.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "journal/aosp_writer.hpp"

namespace blockyard::journal {
namespace {

// The file's own name decides: .txt, .journal, .log, or no ending at all; .zst or .gz may follow.
bool is_text_name(std::string_view path) {
  path.remove_prefix(std::min(path.size(), path.rfind('/') + 1));
  for (const std::string_view packed : {".zst", ".gz"}) {
    if (path.ends_with(packed)) {
      path.remove_suffix(packed.size());
      break;
    }
  }
  return path.find('.') == std::string_view::npos || path.ends_with(".txt") || path.ends_with(".journal") ||
         path.ends_with(".log");
}

void grow(Writer& writer, const Header& header) {
  for (std::size_t i = writer.header().threads.size(); i < header.threads.size(); ++i)
    writer.add_thread(header.threads[i]);
  if (writer.header().names.size() < header.names.size()) writer.header().names = header.names;
  writer.header().preamble_events = header.preamble_events;  // a text's grows while its leading lines are read
}

}  // namespace

JournalOutput::JournalOutput(const std::string& path, const std::string& input, const Header& header,
                             const OutputOptions& options)
    : file_(path, input, options.overwrite), path_(path) {
  if (path.ends_with(".byj") && options.form == OutputForm::by_name) {
    Header own = header;
    own.has_addresses = options.addresses;
    byj_.emplace(file_.temporary(), own, true, path);
  } else if (path.ends_with(".byj.zst") || path.ends_with(".byj.gz")) {
    throw Error(path + ": a .byj is compressed already; name it " + path.substr(0, path.rfind('.')));
  } else if (!is_text_name(path)) {
    throw Error(path +
                ": its ending does not say what to write; a journal is .byj, or text as .txt, .journal or .log, " +
                "each also with .zst or .gz behind it");
  } else {
    auto sink = ByteSink::create(file_.temporary(), path);
    if (options.form == OutputForm::aosp) {
      text_ = std::make_unique<AospWriter>(std::move(sink), header);
    } else {
      text_ = std::make_unique<TextWriter>(std::move(sink), header, text_stacks_, options.text);
    }
  }
}

void JournalOutput::add(const Event& event, const Header& header) {
  ++events_;
  if (text_) {
    text_->add(event, header);
    return;
  }
  grow(*byj_, header);
  byj_->add(event);
}

void JournalOutput::finish(const Header& header) {
  if (text_) {
    text_->finish(header, notes_);
  } else {
    grow(*byj_, header);
    Header complete = header;
    complete.has_addresses = byj_->header().has_addresses;
    byj_->header() = complete;
    byj_->finish();
  }
  file_.commit();
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) == 0) bytes_ = static_cast<std::uint64_t>(facts.st_size);
}

}  // namespace blockyard::journal
