// A scene as in an engine: a million nodes added as children, dictionaries that are filled and dropped, voxel chunks
// that worker threads rebuild. The same code runs on the standard's containers, on Blockyard's over malloc, and on
// Blockyard's over blocks, and the program prints the difference.
//
//   blockyard-example-scene [NODES]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "blockyard/hash_map.hpp"
#include "blockyard/list.hpp"
#include "blockyard/rb_map.hpp"

namespace {

using namespace blockyard;

// --- the three kinds of containers under the same names ---

struct Standard {
  static constexpr const char* name = "std";
  template <class T>
  using ListOf = std::list<T>;
  template <class K, class V>
  using MapOf = std::unordered_map<K, V>;
  template <class K, class V>
  using OrderedOf = std::map<K, V>;

  template <class K, class V>
  static V* find(MapOf<K, V>& map, const K& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }
  template <class K, class V>
  static const V& value_of(const std::pair<const K, V>& entry) {
    return entry.second;
  }
};

template <class A>
struct Blockyard {
  static constexpr const char* name = std::is_same_v<A, MallocBlocks> ? "blockyard on malloc" : "blockyard on blocks";
  template <class T>
  using ListOf = List<T, A>;
  template <class K, class V>
  using MapOf = HashMap<K, V, HasherDefault, ComparatorDefault<K>, A>;
  template <class K, class V>
  using OrderedOf = RBMap<K, V, container::LessDefault, A>;

  template <class K, class V>
  static V* find(MapOf<K, V>& map, const K& key) {
    return map.getptr(key);
  }
  template <class K, class V>
  static const V& value_of(const KeyValue<K, V>& entry) {
    return entry.value;
  }
};

// --- the scene ---

template <class C>
struct Node {
  std::uint32_t id = 0;
  float position[3] = {};
  Node* parent = nullptr;
  typename C::template ListOf<Node*> children;
  typename C::template MapOf<int, Node*> by_name;
};

template <class C>
class Scene {
 public:
  explicit Scene(std::size_t nodes) : nodes_(nodes) {}

  /// As an engine's add_child: the parent lists the child and finds it by name.
  void add_children() {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      Node<C>& node = nodes_[i];
      node.id = i;
      if (i != 0) {
        Node<C>& parent = nodes_[(i - 1) / 8];
        node.parent = &parent;
        parent.children.push_back(&node);
        parent.by_name[static_cast<int>(i)] = &node;
      }
    }
  }

  /// A frame's walk from parents to children.
  std::uint64_t update() {
    std::uint64_t visited = 0;
    for (Node<C>& node : nodes_) {
      for (Node<C>* const child : node.children) {
        child->position[0] = node.position[0] + 1.0f;
        visited += child->id;
      }
    }
    return visited;
  }

  std::uint64_t find_children() {
    std::uint64_t found = 0;
    for (std::uint32_t i = 1; i < nodes_.size(); ++i) {
      found += C::find(nodes_[i].parent->by_name, static_cast<int>(i)) != nullptr;
    }
    return found;
  }

 private:
  std::vector<Node<C>> nodes_;
};

/// Properties by name, as if read from a file, and dropped again.
template <class C>
std::uint64_t fill_dictionaries(std::size_t entries) {
  std::uint64_t bytes = 0;
  for (int round = 0; round < 4; ++round) {
    typename C::template MapOf<int, std::string> dictionary;
    for (std::size_t i = 0; i < entries; ++i) {
      dictionary[static_cast<int>(i)] = std::to_string(i);
    }
    for (const auto& entry : dictionary) {
      bytes += C::value_of(entry).size();
    }
  }
  return bytes;
}

/// Worker threads build voxel chunks as ordered maps. The thread that builds a chunk drops the one before it.
template <class C>
std::uint64_t rebuild_chunks(unsigned rebuilds, unsigned voxels) {
  using Chunk = typename C::template OrderedOf<std::uint32_t, std::uint32_t>;
  constexpr unsigned chunk_count = 16;
  std::vector<std::atomic<Chunk*>> chunks(chunk_count);
  std::atomic<unsigned> next{0};
  std::atomic<std::uint64_t> total{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&] {
      for (unsigned task = next++; task < rebuilds; task = next++) {
        auto chunk = std::make_unique<Chunk>();
        for (std::uint32_t i = 0; i < voxels; ++i) {
          (*chunk)[i * 2654435761u] = task;
        }
        total += chunk->size();
        std::unique_ptr<Chunk> old(chunks[task % chunk_count].exchange(chunk.release()));
      }
    });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  for (std::atomic<Chunk*>& chunk : chunks) {
    delete chunk.load();
  }
  return total;
}

// --- running and comparing ---

constexpr const char* phases[] = {"add children", "update",       "find children",
                                  "dictionaries", "voxel chunks", "take down"};
constexpr std::size_t phase_count = std::size(phases);

struct Figures {
  double ms[phase_count];
  double peak_mb;
  std::uint64_t check;  ///< the same for all, or they did not do the same work
};

double cpu_ms() {
  std::timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <class C>
Figures run(std::size_t nodes) {
  Figures figures{};
  std::size_t at = 0;
  const auto timed = [&](auto&& work) {
    const double begin = cpu_ms();
    work();
    figures.ms[at++] = cpu_ms() - begin;
  };
  auto scene = std::make_unique<Scene<C>>(nodes);
  timed([&] { scene->add_children(); });
  timed([&] { figures.check += scene->update(); });
  timed([&] { figures.check += scene->find_children(); });
  timed([&] { figures.check += fill_dictionaries<C>(nodes / 2); });
  timed([&] { figures.check += rebuild_chunks<C>(200, static_cast<unsigned>(nodes / 100)); });
  timed([&] { scene.reset(); });
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  figures.peak_mb = static_cast<double>(usage.ru_maxrss) / 1024;
  return figures;
}

/// Runs in its own process, so that no kind inherits another's heap.
template <class C>
Figures run_apart(std::size_t nodes) {
  int ends[2];
  if (pipe(ends) != 0) {
    std::perror("blockyard: pipe");
    std::exit(1);
  }
  const pid_t child = fork();
  if (child == 0) {
    const Figures figures = run<C>(nodes);
    _exit(write(ends[1], &figures, sizeof figures) == sizeof figures ? 0 : 1);
  }
  close(ends[1]);
  Figures figures{};
  const bool complete = read(ends[0], &figures, sizeof figures) == sizeof figures;
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !complete) {
    std::fprintf(stderr, "blockyard: the scene on %s did not finish\n", C::name);
    std::exit(1);
  }
  return figures;
}

}  // namespace

int main(int count, char** arguments) {
  char* end = nullptr;
  const std::size_t nodes = count > 1 ? std::strtoull(arguments[1], &end, 10) : 1'000'000;
  if (count > 2 || nodes < 100 || nodes > 50'000'000 || (end != nullptr && *end != '\0')) {
    std::fprintf(stderr, "usage: blockyard-example-scene [NODES from 100 to 50000000]\n");
    return 2;
  }
  const Figures standard = run_apart<Standard>(nodes);
  const Figures on_malloc = run_apart<Blockyard<MallocBlocks>>(nodes);
  const Figures on_blocks = run_apart<Blockyard<StaticBlocks>>(nodes);
  if (standard.check != on_malloc.check || standard.check != on_blocks.check) {
    std::fprintf(stderr, "blockyard: the three scenes differ\n");
    return 1;
  }
  std::printf("%zu nodes, CPU ms of all threads%15s%13s%13s%9s\n", nodes, "std", "on malloc", "on blocks", "to std");
  const auto row = [](const char* name, double a, double b, double c) {
    std::printf("%-24s%24.1f%13.1f%13.1f%9.2f\n", name, a, b, c, c / a);
  };
  double sums[3] = {};
  for (std::size_t i = 0; i < phase_count; ++i) {
    row(phases[i], standard.ms[i], on_malloc.ms[i], on_blocks.ms[i]);
    sums[0] += standard.ms[i];
    sums[1] += on_malloc.ms[i];
    sums[2] += on_blocks.ms[i];
  }
  row("total", sums[0], sums[1], sums[2]);
  row("peak memory, MB", standard.peak_mb, on_malloc.peak_mb, on_blocks.peak_mb);
  return 0;
}
