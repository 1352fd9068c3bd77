// What the locality test drives: our lifetimes through their own interface, everything else through its adapter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace blockyard::locality {

struct Request {
  std::size_t count;
  std::size_t size;       ///< bytes
  std::size_t alignment;  ///< bytes
};

/// Nanoseconds of the whole loop over all blocks.
struct Pass {
  double allocate_ns;
  double free_ns;
};

class Driven {
 public:
  virtual ~Driven() = default;
  /// Brings it into the state of a program that has run for a while: allocates many blocks of many sizes and frees half
  /// of them. Does nothing for lifetimes whose blocks end with a frame.
  virtual void age(const Request& request) = 0;
  /// Allocates all blocks in one timed loop, then frees them in the order of their allocation in another. What lasts
  /// longer than a loop (a frame) ends after the clock has stopped. `blocks` has room for `count` and keeps the
  /// addresses. Throws journal::Error when a block can't be had.
  virtual Pass run(const Request& request, void** blocks) = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string version() const = 0;
};

struct Choice {
  std::string what;         ///< temp, temp-job, persistent, block, or the path of an adapter
  std::string options;      ///< for an adapter
  bool populate = false;    ///< for an adapter
  std::size_t temp_region;  ///< bytes of the temp region, which then never grows; 0: the default
};

/// Starts the allocator. Throws journal::Error.
std::unique_ptr<Driven> start(const Choice& choice, const Request& request);

}  // namespace blockyard::locality
