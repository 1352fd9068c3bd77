#include "journal/aosp_writer.hpp"

#include <array>
#include <charconv>

namespace blockyard::journal {

namespace {
constexpr std::size_t flush_bytes = 1U << 16;
}

void AospWriter::add(const Event& event, const Header& header) {
  while (threads_.size() < header.threads.size()) threads_.add(header.threads[threads_.size()]);
  if (!takes_block(event.kind) && !gives_block(event.kind)) {
    ++marks_;
    return;
  }
  if (event.tag != 0 || event.site != no_site) ++described_;
  put_decimal(threads_[event.thread]);
  switch (event.kind) {
    case Kind::free:
      put(": free");
      put_pointer(pointers_.taken(event.block));
      break;
    case Kind::reallocate: {
      put(": realloc");
      const std::uint64_t old = pointers_.taken(event.old_block);
      put_pointer(pointers_.given(event));
      put_pointer(old);
      break;
    }
    case Kind::allocate_aligned:
      put(": memalign");
      put_pointer(pointers_.given(event));
      put(" ");
      put_decimal(event.alignment);
      break;
    case Kind::allocate_zeroed:
      put(": calloc");
      put_pointer(pointers_.given(event));
      put(" 1");
      break;
    default:
      put(": malloc");
      put_pointer(pointers_.given(event));
  }
  if (gives_block(event.kind)) {
    put(" ");
    put_decimal(event.size);
  }
  if (is_paced_) {
    put(" ");
    put_decimal(event.time_ns);
    put(" ");
    put_decimal(event.time_ns + event.duration_ns);
  }
  put("\n");
  if (text_.size() < flush_bytes) return;
  sink_->write(text_);
  text_.clear();
}

void AospWriter::finish(const Header& header, std::vector<std::string>& notes) {
  sink_->write(text_);
  text_.clear();
  sink_->finish();
  const auto lost = [&notes](std::uint64_t count, const char* what) {
    if (count != 0) notes.push_back(std::to_string(count) + what);
  };
  lost(marks_, " marks of frames and phases were left out: this form has none");
  lost(described_, " events lost their tag or call stack: this form has none");
  lost(header.preamble_events,
       " allocations of the preamble became the first ordinary ones: this form has no preamble");
}

void AospWriter::put_decimal(std::uint64_t value) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

void AospWriter::put_pointer(std::uint64_t value) {
  std::array<char, 16> digits;
  constexpr int hexadecimal = 16;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal).ptr;
  text_ += " 0x";
  text_.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
}

}  // namespace blockyard::journal
