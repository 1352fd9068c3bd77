// Sixty frames of std::pmr containers on the heap, on temp memory and on a pool.
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <vector>

#include "blockyard/block_resource.hpp"
#include "blockyard/frame.h"
#include "blockyard_pmr.hpp"

int main() {
  // What forgets to name a resource fails.
  std::pmr::set_default_resource(std::pmr::null_memory_resource());
  blockyard::tagged_resource heap("world");
  blockyard::tagged_resource temp("frame", blockyard::temp_resource());
  blockyard::block_resource blocks(&heap);
  blockyard::tagged_resource pool("things", &blocks);
  std::size_t sum = 0;
  {
    std::pmr::map<int, std::pmr::string> names(&heap);
    std::pmr::list<std::pmr::string> things(&pool);
    for (int frame = 0; frame < 60; ++frame) {
      {
        std::pmr::vector<int> visible(&temp);
        for (int i = 0; i < 100; ++i) visible.push_back(i * frame);
        sum += visible.size();
      }
      names[frame] = "a name that is too long to stand within its string";
      for (int i = 0; i < 20; ++i) things.emplace_back("a thing that is too long to stand in its string");
      while (things.size() > 100) things.pop_front();
      by_frame_end(0);
    }
    sum += names.size() + things.size();
  }
  return sum == 60 * 100 + 60 + 100 ? 0 : 1;
}
