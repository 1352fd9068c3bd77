#include "replay/run/timed_call.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace blockyard::replay {

Floors measure_floors() {
  constexpr std::size_t count = 20'001;
  static std::array<std::uint32_t, count> calls;
  static std::array<std::uint32_t, count> touches;
  std::mutex unused;
  std::uint32_t step = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Span span;
    measure<true, false>(span, unused, [] {});
    const std::uint64_t touched = clock::ticks_fenced();
    calls[i] = saturated(span.end - span.begin);
    touches[i] = saturated(touched - span.end);
    step = std::gcd(std::gcd(step, calls[i]), touches[i]);
  }
  const auto middle = count / 2;
  std::nth_element(calls.begin(), calls.begin() + middle, calls.end());
  std::nth_element(touches.begin(), touches.begin() + middle, touches.end());
  return {calls[middle], touches[middle], step};
}

}  // namespace blockyard::replay
