// Loaded and unloaded: allocates under a tag whose name goes away with it.
#include <cstdlib>

#include "blockyard/tag.hpp"

extern "C" void plugin_work() {
  const blockyard::tag plugin("plugin");
  void* volatile block = std::malloc(600'002);
  std::free(block);
}
