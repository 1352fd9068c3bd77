// Reads events in journal order, from .byj or any other form that convert understands, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "journal/event.hpp"

namespace blockyard::journal {

/// A stream of events. One thread at a time.
class Source {
 public:
  virtual ~Source() = default;
  /// Complete for .byj with a footer; of text or of a journal whose program was killed, threads grow while reading, and
  /// so does preamble_events: an event is preamble when its number is below it *after* next() returned that event.
  virtual const Header& header() const = 0;
  /// The next events in order, empty at the end. The span is valid until the next call. Throws Error.
  virtual std::span<const Event> next() = 0;
  /// Bytes of input consumed so far and in all, for progress.
  virtual std::uint64_t bytes_read() const = 0;
  virtual std::uint64_t bytes_total() const = 0;
  /// One sentence for each thing put right while reading (events reordered between threads, a missing footer, ...).
  virtual std::span<const std::string> notes() const = 0;
};

/// What a reader of a .byj does where the file is damaged or was cut short: throw (what everybody wants but `cut`), or
/// end there, with all whole blocks before it delivered.
enum class AtDamage { fail, end };

/// Opens a journal in any form by looking at its first bytes: .byj, the study's text (plain, .zst, .gz), heaptrack (its
/// interpreted and raw recordings, .zst or .gz). Throws Error.
std::unique_ptr<Source> open(const std::string& path, AtDamage at_damage = AtDamage::fail);

}  // namespace blockyard::journal
