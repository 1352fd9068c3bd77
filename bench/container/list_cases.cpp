// Lists of ints: fill, walk, clear, and the same again.
#include <plf_colony.h>
#include <boost/container/adaptive_pool.hpp>
#include <boost/container/list.hpp>
#include <boost/container/node_allocator.hpp>
#include <foonathan/memory/container.hpp>
#include <foonathan/memory/memory_pool.hpp>
#include <foonathan/memory/namespace_alias.hpp>
#include <list>
#include <memory>
#include <memory_resource>

#include "blockyard/allocator.hpp"
#include "blockyard/block_resource.hpp"
#include "blockyard/list.hpp"
#include "case.hpp"

namespace blockyard::bench {
namespace {

template <class List, class Add>
void fill_and_walk(List& list, std::size_t n, Add&& add) {
  const std::size_t before = resident_bytes();
  for (const char* const again : {"", "_warm"}) {
    phase((std::string("insert") + again).c_str(), n, [&] {
      for (std::size_t i = 0; i < n; ++i) {
        add(list, static_cast<int>(i));
      }
    });
    phase((std::string("iterate") + again).c_str(), n, [&] {
      std::uint64_t sum = 0;
      for (const int value : list) {
        sum += static_cast<std::uint64_t>(value);
      }
      keep(sum);
    });
    if (*again == '\0') {
      print("bytes", static_cast<double>(resident_bytes() - before) / static_cast<double>(n));
    }
    phase((std::string("clear") + again).c_str(), n, [&] { list.clear(); });
  }
  print("peak_gb", static_cast<double>(peak_resident_bytes()) / 1e9);
}

constexpr auto push_back = [](auto& list, int value) { list.push_back(value); };

template <class List>
void run(std::size_t n) {
  List list;
  fill_and_walk(list, n, push_back);
}

void run_pmr(std::size_t n) {
  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::list<int> list(&pool);
  fill_and_walk(list, n, push_back);
}
void run_pmr_blocks(std::size_t n) {
  block_resource pool;
  std::pmr::list<int> list(&pool);
  fill_and_walk(list, n, push_back);
}
void run_foonathan(std::size_t n) {
  memory::memory_pool<> pool(memory::list_node_size<int>::value, 1 << 20);
  std::list<int, memory::std_allocator<int, memory::memory_pool<>>> list(pool);
  fill_and_walk(list, n, push_back);
}
void run_colony(std::size_t n) {
  plf::colony<int> colony;
  fill_and_walk(colony, n, [](auto& list, int value) { list.insert(value); });
}

}  // namespace

std::vector<Case> list_cases() {
  return {
      {"list", "List", run<List<int>>},
      {"list", "List-direct", run<List<int, DirectBlocks>>},
      {"list", "std", run<std::list<int>>},
      {"list", "std+allocator", run<std::list<int, allocator<int>>>},
      {"list", "std+pmr-pool", run_pmr},
      {"list", "std+block_resource", run_pmr_blocks},
      {"list", "boost+node_allocator", run<boost::container::list<int, boost::container::node_allocator<int>>>},
      {"list", "boost+adaptive_pool", run<boost::container::list<int, boost::container::adaptive_pool<int>>>},
      {"list", "std+foonathan", run_foonathan},
      {"list", "plf::colony", run_colony},
  };
}

}  // namespace blockyard::bench
