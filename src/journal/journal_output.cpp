#include "journal/journal_output.hpp"

namespace blockyard::journal {
namespace {

void grow(Writer& writer, const Header& header) {
  for (std::size_t i = writer.header().threads.size(); i < header.threads.size(); ++i) writer.add_thread(header.threads[i]);
  if (writer.header().names.size() < header.names.size()) writer.header().names = header.names;
  writer.header().preamble_events = header.preamble_events;  // a text's grows while its leading lines are read
}

}  // namespace

JournalOutput::JournalOutput(const std::string& path, const std::string& input, const Header& header,
                             const OutputOptions& options)
    : file_(path, input, options.overwrite) {
  if (path.ends_with(".byj")) {
    Header own = header;
    own.has_addresses = options.addresses;
    byj_.emplace(file_.temporary(), own, true);
  } else if (path.ends_with(".byj.zst") || path.ends_with(".byj.gz")) {
    throw Error(path + ": a .byj is compressed already; name it " + path.substr(0, path.rfind('.')));
  } else {
    text_.emplace(ByteSink::create(file_.temporary(), path), header, options.text);
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

std::uint64_t JournalOutput::finish(const Header& header) {
  if (text_) {
    text_->finish(header);
  } else {
    grow(*byj_, header);
    Header& own = byj_->header();
    for (std::size_t i = 0; i < header.threads.size(); ++i) own.threads[i].name = header.threads[i].name;
    own.ticks_per_ns = header.ticks_per_ns;
    own.paced = header.paced;
    own.cut_at_end = header.cut_at_end;
    byj_->finish();
  }
  file_.commit();
  return events_;
}

}  // namespace blockyard::journal
