// Fuzz input as a stream of small choices, the loop of an exercise, and the types that every container is exercised
// with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace blockyard::fuzz {

/// Reads the input byte by byte; 0 when it is used up.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> input) : input_(input) {}

  [[nodiscard]] bool is_done() const { return at_ == input_.size(); }
  std::uint8_t byte() { return is_done() ? 0 : input_[at_++]; }
  std::uint32_t below(std::uint32_t bound) { return (byte() | std::uint32_t{byte()} << 8) % bound; }

 private:
  std::span<const std::uint8_t> input_;
  std::size_t at_ = 0;
};

/// Ends the process with the condition: what libFuzzer and a test both notice.
inline void require(bool holds, const char* condition, int line) {
  if (!holds) {
    std::fprintf(stderr, "line %d: %s does not hold\n", line, condition);
    std::abort();
  }
}
#define REQUIRE(condition) ::blockyard::fuzz::require((condition), #condition, __LINE__)

/// Steps until the input is used up, with checks on the way and at the end.
template <class Exercise>
void run(Exercise&& exercise, Bytes& bytes) {
  while (!bytes.is_done()) {
    exercise.step(bytes);
    if (bytes.byte() % exercise.steps_a_check == 0) {
      exercise.check();
    }
  }
  exercise.check();
}

/// The input's first byte chooses what the rest is run with.
template <class... Exercises>
void run_one_of(std::span<const std::uint8_t> input) {
  constexpr void (*runs[])(Bytes&) = {[](Bytes& bytes) { run(Exercises(), bytes); }...};
  Bytes bytes(input);
  runs[bytes.byte() % sizeof...(Exercises)](bytes);
}

/// How a number becomes a value of the type under test.
template <class T>
T make(std::uint32_t number) {
  return static_cast<T>(number);
}
template <>
inline std::string make<std::string>(std::uint32_t number) {
  // Some fit std::string's own buffer, some do not; comparing by text orders them unlike numbers.
  return std::string(number % 40, 'x') + std::to_string(number);
}

/// An over-aligned value.
struct alignas(64) Wide {
  std::uint32_t number;
  friend bool operator==(const Wide&, const Wide&) = default;
  friend auto operator<=>(const Wide&, const Wide&) = default;
};
template <>
inline Wide make<Wide>(std::uint32_t number) {
  return {number};
}

template <class T>
void require_aligned(const T* object) {
  REQUIRE(reinterpret_cast<std::uintptr_t>(object) % alignof(T) == 0);
}

}  // namespace blockyard::fuzz

template <>
struct std::hash<blockyard::fuzz::Wide> {
  std::size_t operator()(const blockyard::fuzz::Wide& wide) const noexcept { return wide.number; }
};
