// Loaded and unloaded again: allocates when loaded, while it works, and when unloaded.
#include <cstdlib>

namespace {

void* volatile sink;

struct Lifetime {
  Lifetime() : block(std::malloc(810'001)) {}
  ~Lifetime() {
    std::free(block);
    sink = std::malloc(810'002);
    std::free(sink);
  }
  void* block;
} lifetime;

}  // namespace

extern "C" void plugin_work() {
  int* volatile numbers = new int[202'501];  // 810,004 bytes
  delete[] numbers;
}
