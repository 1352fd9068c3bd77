// Reads events in journal order, in bounded memory, from .byj and from every other form that can be imported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "journal/event.hpp"
#include "journal/stacks.hpp"

namespace blockyard::journal {

/// A stream of events. One thread at a time.
class Source {
 public:
  virtual ~Source() = default;
  /// Complete for a .byj with a footer. For text, and for a journal whose recorder was killed, threads and
  /// preamble_events grow while reading: an event is preamble when its number is below preamble_events *after* next()
  /// returned it.
  virtual const Header& header() const = 0;
  /// What Event::site refers to. Complete for a .byj with a footer; otherwise it grows while reading, and holds the
  /// stacks of every event that next() returned. Empty for a journal without stacks.
  virtual const Stacks& stacks() const = 0;
  /// Whether header() and stacks() are complete before the first event is read.
  virtual bool is_complete() const { return false; }
  /// The next events in order, empty at the end. The span is valid until the next call. Throws Error.
  virtual std::span<const Event> next() = 0;
  /// Bytes of input consumed so far and in all, for progress.
  virtual std::uint64_t bytes_read() const = 0;
  virtual std::uint64_t bytes_total() const = 0;
  /// One sentence for each repair made while reading (events reordered between threads, a missing footer, ...).
  virtual std::span<const std::string> notes() const = 0;
  /// The name of the form, a constant: "byj", "text", "heaptrack", "unreal", ...
  virtual std::string_view form() const = 0;
};

/// What a reader of a .byj does where the file is damaged or was cut short: throw, or end there after all whole blocks
/// before it (only `cut` wants that).
enum class AtDamage { fail, end };

/// Opens a journal of the form of this name, or, without a name, of the form that its first line shows. All forms but
/// .byj may be compressed (.zst, .gz). Throws Error.
std::unique_ptr<Source> open(const std::string& path, AtDamage at_damage = AtDamage::fail, std::string_view form = {});

}  // namespace blockyard::journal
