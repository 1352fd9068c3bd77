// Knows nothing of by_malloc where it allocates; asks the heap afterwards how much of it lives there.
#include <blockyard/heap.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

namespace {

std::uint64_t live() {
  by_heap_statistics now{};
  by_heap_get_statistics(&now);
  return now.live;
}

// Every way gets more than a megabyte, so that nothing else that allocates meanwhile can be taken for it.
constexpr std::size_t bytes = 3'000'000;

void report(const char* how, const std::function<void*()>& allocate, const std::function<void(void*)>& release) {
  const std::uint64_t before = live();
  void* const block = allocate();
  const bool on_heap = block != nullptr && live() >= before + bytes;
  release(block);
  std::printf("%s: %s\n", how, on_heap ? "on the heap" : "ELSEWHERE");
}

}  // namespace

int main() {
  report(
      "malloc", [] { return std::malloc(bytes); }, std::free);
  report(
      "calloc", [] { return std::calloc(bytes, 1); }, std::free);
  report(
      "realloc", [] { return std::realloc(std::malloc(10), bytes); }, std::free);
  report(
      "aligned_alloc", [] { return std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); }, std::free);
  report(
      "new", [] { return ::operator new(bytes); }, [](void* block) { ::operator delete(block); });
  report(
      "new[]", [] { return new char[bytes]; }, [](void* block) { delete[] static_cast<char*>(block); });
  auto* const text = static_cast<char*>(std::malloc(bytes + 1));
  std::memset(text, 'x', bytes);
  text[bytes] = '\0';
  report(
      "strdup, from inside the C library", [&] { return strdup(text); }, std::free);
  std::free(text);
  report(
      "a thread",
      [] {
        void* block = nullptr;
        std::thread([&] { block = std::malloc(bytes); }).join();
        return block;
      },
      std::free);
  const char* const broken = by_heap_check();
  std::puts(broken == nullptr ? "the heap is sound" : broken);
}
