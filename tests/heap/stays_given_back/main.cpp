// Why: where huge pages are asked for, the kernel makes one of any 2 MiB in which anything is populated (khugepaged),
// and so filled again what the heap had given back: resident memory crept up though nothing was allocated. The kernel
// takes minutes; MADV_COLLAPSE does the same at once to a stretch, by the same rules. What was given back must stay so,
// and once all of a stretch has gone back, it must be huge again for who allocates it next.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "behaviour.hpp"

namespace {

constexpr std::size_t chunk = std::size_t{2} << 20;
constexpr std::size_t page = 4096;
constexpr std::size_t block_bytes = chunk / 4;  // four blocks a chunk
constexpr std::size_t block_count = 256;
constexpr int collapse_advice = 25;  // MADV_COLLAPSE, which older headers lack

char* chunk_of(void* place) { return reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(place) & ~(chunk - 1)); }

bool collapse(char* place) { return madvise(place, chunk, collapse_advice) == 0; }

// Whether the mapping at this place is advised against huge pages.
bool asks_for_small_pages(const char* place) {
  std::FILE* maps = std::fopen("/proc/self/smaps", "r");
  behaviour::require(maps != nullptr, "/proc/self/smaps can't be read");
  std::array<char, 512> line{};
  bool here = false;
  bool small = false;
  while (std::fgets(line.data(), line.size(), maps) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.data(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= reinterpret_cast<std::uintptr_t>(place) && reinterpret_cast<std::uintptr_t>(place) < end;
    } else if (here && std::strncmp(line.data(), "VmFlags:", 8) == 0) {
      small = std::strstr(line.data(), " nh") != nullptr;
    }
  }
  std::fclose(maps);
  return small;
}

std::size_t resident_pages(char* place, std::size_t bytes) {
  std::array<unsigned char, chunk / page> in_memory{};
  std::size_t resident = 0;
  for (std::size_t done = 0; done < bytes; done += chunk) {
    const std::size_t part = std::min(chunk, bytes - done);
    behaviour::require(mincore(place + done, part, in_memory.data()) == 0, "mincore failed");
    resident += static_cast<std::size_t>(std::count_if(in_memory.begin(),
                                                       in_memory.begin() + static_cast<std::ptrdiff_t>(part / page),
                                                       [](unsigned char state) { return (state & 1) != 0; }));
  }
  return resident;
}

template <class Condition>
void await(Condition&& condition, const char* what) {
  std::fprintf(stderr, "waiting until %s\n", what);
  while (!condition()) {
    usleep(10'000);
  }
}

struct Half {
  char* chunk;
  std::vector<char*> freed;
};

}  // namespace

int main() {
  behaviour::ask_for_a_janitor();
  std::vector<char*> blocks;
  for (std::size_t i = 0; i < block_count; ++i) {
    blocks.push_back(static_cast<char*>(std::memset(std::malloc(block_bytes), 1, block_bytes)));
  }
  std::sort(blocks.begin(), blocks.end());
  // Of every chunk that holds four blocks, the first stays.
  std::vector<Half> halves;
  std::vector<char*> kept;
  for (std::size_t i = 0; i < block_count; ++i) {
    char* const mine = chunk_of(blocks[i]);
    if (i + 3 < block_count && chunk_of(blocks[i + 3] + block_bytes - 1) == mine) {
      halves.push_back({mine, {blocks[i + 1], blocks[i + 2], blocks[i + 3]}});
      kept.push_back(blocks[i]);
      i += 3;
    } else {
      kept.push_back(blocks[i]);
    }
  }
  behaviour::require(halves.size() >= 16, "the blocks do not lie densely enough for this test");
  if (!collapse(halves[0].chunk)) {
    std::printf("skipped: this machine makes no huge pages (%s)\n", std::strerror(errno));
    return 0;
  }
  for (const Half& half : halves) {
    std::for_each(half.freed.begin(), half.freed.end(), std::free);
  }
  const auto freed_pages = [&] {
    std::size_t resident = 0;
    for (const Half& half : halves) {
      for (char* const block : half.freed) {
        resident += resident_pages(block, block_bytes);
      }
    }
    return resident;
  };
  // The reserve stays, which may follow the burst up to 16 MiB for a moment.
  const std::size_t enough = halves.size() * 3 * (block_bytes / page) / 4;
  await([&] { return freed_pages() <= enough; }, "what was freed is given back");
  const std::size_t before = freed_pages();
  for (const Half& half : halves) {
    if (resident_pages(half.chunk, chunk) <= chunk / page / 4 + 1) {
      static_cast<void>(collapse(half.chunk));
    }
  }
  std::printf("%zu pages of %zu freed blocks resident; %zu after the kernel was asked for huge pages there\n", before,
              3 * halves.size(), freed_pages());
  behaviour::require(freed_pages() <= before, "memory that was given back is filled again by the kernel");

  std::for_each(kept.begin(), kept.end(), std::free);
  const auto resident_chunks = [&] {
    return std::count_if(halves.begin(), halves.end(),
                         [](const Half& half) { return resident_pages(half.chunk, chunk) != 0; });
  };
  await([&] { return static_cast<std::size_t>(resident_chunks()) <= halves.size() / 2; },
        "wholly free memory is given back");
  constexpr std::size_t large = 8 * chunk;
  std::array<char*, 6> again;
  for (char*& block : again) {
    block = static_cast<char*>(std::malloc(large));
    std::memset(block, 1, large);
  }
  std::size_t inside = 0;
  for (const Half& half : halves) {
    if (std::any_of(again.begin(), again.end(),
                    [&](char* block) { return half.chunk >= block && half.chunk + chunk <= block + large; })) {
      ++inside;
      if (asks_for_small_pages(half.chunk)) {
        std::printf("skipped: huge pages are dear on this machine, so the heap asks for none\n");
        return 0;
      }
      behaviour::require(collapse(half.chunk), "what was given back as a whole gets no huge pages any more");
    }
  }
  std::printf("%zu of %zu stretches were allocated again\n", inside, halves.size());
  behaviour::require(inside >= 4, "too few stretches were allocated again to tell");
  std::for_each(again.begin(), again.end(), std::free);
  behaviour::require_sound_heap();
}
