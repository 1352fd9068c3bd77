// Why: a drop-in malloc serves constructors of shared objects and of globals long before main, when the C library may
// not be ready for threads, and serves destructors after main has returned.
#include <cstring>
#include <string>
#include <vector>

#include "behaviour.hpp"

namespace {

struct Early {
  Early() : text(1000, 'e'), block(std::malloc(100)), large(std::malloc(3 << 20)) { std::memset(large, 1, 3 << 20); }
  ~Early() {
    std::free(block);
    std::free(large);
    for (int i = 0; i < 1000; ++i) {
      std::free(std::malloc(static_cast<std::size_t>(i)));
    }
    behaviour::require(text == std::string(1000, 'e'), "a block from before main lost its contents");
  }
  std::string text;
  void* block;
  void* large;
};

[[gnu::init_priority(101)]] Early early;

[[gnu::constructor(101)]] void earliest() { std::free(std::malloc(24)); }

}  // namespace

int main() {
  std::vector<std::string> more(10000, std::string(40, 'm'));
  std::atexit([] { std::free(std::malloc(5000)); });
  behaviour::require_sound_heap();
}
