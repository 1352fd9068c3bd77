// A program to record: threads that call each other's functions at random depths, allocate on the way, and throw now
// and then. throwing THREADS EVENTS
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct State {
  std::uint32_t random;
  long left;
  std::vector<std::string> kept;

  std::uint32_t draw() {
    random = random * 1664525u + 1013904223u;
    return random >> 16;
  }
};

using Function = void (*)(State&, unsigned);
extern const Function functions[8];

void allocate(State& state) {
  --state.left;
  std::string text(20 + state.draw() % 200, 'x');
  if (state.kept.size() < 4096) {
    state.kept.push_back(std::move(text));
  } else {
    state.kept[state.draw() % state.kept.size()].swap(text);
  }
}

template <unsigned number>
[[gnu::noinline]] void function(State& state, unsigned depth) {
  const auto owned = std::make_unique<std::uint64_t[]>(1 + number * 3);
  owned[0] = depth;
  for (unsigned call = 0; call < 1 + number % 3 && state.left > 0; ++call) {
    if (depth == 0) {
      allocate(state);
      if (state.draw() % 64 == 0) throw std::runtime_error("a level that could not be loaded, for once");
    } else if (state.draw() % 8 == 0) {
      try {
        functions[state.draw() % 8](state, depth - 1);
      } catch (const std::exception& error) {
        state.kept.emplace_back(error.what());
        if (state.kept.size() > 4096) state.kept.clear();
      }
    } else {
      functions[state.draw() % 8](state, depth - 1);
    }
  }
}

const Function functions[8] = {function<0>, function<1>, function<2>, function<3>,
                               function<4>, function<5>, function<6>, function<7>};

void work(std::uint32_t seed, long events) {
  State state{seed, events, {}};
  while (state.left > 0) {
    try {
      functions[state.draw() % 8](state, 4 + state.draw() % 16);
    } catch (const std::exception&) {
      --state.left;
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 2;
  const long events = count > 2 ? std::atol(arguments[2]) : 200'000;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(work, static_cast<std::uint32_t>(i + 1), events);
  for (std::thread& thread : running) thread.join();
  return 0;
}
