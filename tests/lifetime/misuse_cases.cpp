// Programs that each break one rule of the lifetimes: misuse_cases NAME. It exits with 0 if nothing noticed.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>

#include "blockyard/lifetime.hpp"
#include "blockyard/rewindable.hpp"

namespace {

using namespace blockyard;

void write_after_frame() {
  auto* const block = static_cast<volatile char*>(temp_allocate(64, 16));
  by_thread_end_frame();
  block[8] = 1;
  static_cast<void>(temp_allocate(64, 16));
}

void write_to_a_cursors_block_after_frame() {
  temp_cursor cursor;
  static_cast<void>(cursor.allocate(64));
  auto* const block = static_cast<volatile char*>(cursor.allocate(64));
  by_thread_end_frame();
  block[8] = 1;
  static_cast<void>(cursor.allocate(64));
  static_cast<void>(cursor.allocate(64));
}

void write_after_scope() {
  volatile char* block = nullptr;
  {
    const temp_scope scope;
    block = static_cast<volatile char*>(temp_allocate(64, 16));
  }
  block[8] = 1;
  static_cast<void>(temp_allocate(64, 16));
}

void write_to_a_block_outside_of_the_region_after_its_frame() {
  constexpr std::size_t size = std::size_t{8} << 20;  // beyond the limit of any region
  auto* const block = static_cast<volatile char*>(temp_allocate(size, 16));
  by_thread_end_frame();
  block[size / 2] = 1;
  static_cast<void>(temp_allocate(size, 16));
}

void write_to_a_freed_temp_job_block() {
  auto* const block = static_cast<char*>(allocate(64, 16, Lifetime::temp_job));
  deallocate(block, Lifetime::temp_job);
  static_cast<volatile char*>(block)[8] = 1;
  for (int i = 0; i < 2000; ++i) {  // until its chunk is used again
    deallocate(allocate(64, 16, Lifetime::temp_job), Lifetime::temp_job);
  }
}

void write_to_a_freed_block_of_a_thread_that_ended() {
  volatile char* block = nullptr;
  std::thread([&] {
    block = static_cast<volatile char*>(allocate(64, 16, Lifetime::temp_job));
    deallocate(const_cast<char*>(block), Lifetime::temp_job);
  }).join();
  block[8] = 1;
  static_cast<void>(allocate(64, 16, Lifetime::temp_job));
}

void deallocate_after_frame() {
  static_cast<void>(temp_allocate(64, 16));
  void* const block = temp_allocate(64, 16);
  by_thread_end_frame();
  temp_deallocate(block);
}

void temp_of_another_thread() {
  void* block = nullptr;
  std::atomic<bool> ready{false};
  std::atomic<bool> done{false};
  std::thread other([&] {
    static_cast<void>(temp_allocate(64, 16));
    block = temp_allocate(64, 16);
    ready.store(true);
    while (!done.load()) {
    }
  });
  while (!ready.load()) {
  }
  temp_deallocate(block);
  done.store(true);
  other.join();
}

void stale_span() {
  const temp_span<int> span(10);
  by_thread_end_frame();
  span[0] = 1;
}

void temp_job_double_free() {
  void* const block = allocate(64, 16, Lifetime::temp_job);
  deallocate(allocate(64, 16, Lifetime::temp_job), Lifetime::temp_job);
  deallocate(block, Lifetime::temp_job);
  deallocate(block, Lifetime::temp_job);
}

void overrun_a_temp_job_block() {
  auto* const block = static_cast<volatile char*>(allocate(64, 16, Lifetime::temp_job));
  void* const behind = allocate(64, 16, Lifetime::temp_job);
  for (int i = 0; i < 72; ++i) {
    block[i] = 1;
  }
  deallocate(behind, Lifetime::temp_job);
}

// The first block of a region has no memory of the region before it.
void temp_given_back_as_temp_job() { deallocate(temp_allocate(64, 16), Lifetime::temp_job); }
void temp_reallocated_as_temp_job() {
  static_cast<void>(reallocate(temp_allocate(64, 16), 64, 128, 16, Lifetime::temp_job));
}

void first_temp_block_reallocated_on_another_thread() {
  void* const block = temp_allocate(64, 16);
  std::thread([&] { static_cast<void>(reallocate(block, 64, 128, 16, Lifetime::temp)); }).join();
}

void rewind_while_allocating() {
  rewindable arena;
  std::atomic<bool> stop{false};
  std::atomic<int> allocated{0};
  std::thread other([&] {
    while (!stop.load()) {
      static_cast<void>(arena.try_allocate(64));
      allocated.fetch_add(1);
    }
  });
  // Long enough for both threads to run, even on one core.
  for (int i = 0; i < 200'000 || allocated.load() < 200'000; ++i) {
    arena.rewind();
  }
  stop.store(true);
  other.join();
}

void leave_a_temp_job_block() {
  static_cast<void>(allocate(64, 16, Lifetime::temp_job));
  for (int frame = 0; frame < 5; ++frame) {
    by_frame_end(0);
  }
}

void right_use() {
  for (int frame = 0; frame < 10; ++frame) {
    const temp_scope scope;
    void* const block = temp_allocate(100, 16);
    std::memset(block, 1, 100);
    std::memset(temp_allocate(1 << 20, 16), 1, 1 << 20);
    temp_deallocate(block);
    {
      temp_cursor cursor;
      std::memset(cursor.allocate(100), 1, 100);
      std::memset(cursor.allocate(1 << 20), 1, 1 << 20);
      cursor.deallocate(cursor.allocate(100), 100);
      std::memset(temp_allocate(100, 16), 1, 100);
    }
    void* const job = allocate(100, 16, Lifetime::temp_job);
    std::memset(job, 1, 100);
    deallocate(job, Lifetime::temp_job);
    for (int i = 0; i < 2000; ++i) {
      void* const other = allocate(64, 64, Lifetime::temp_job);
      std::memset(other, 1, 64);
      deallocate(other, Lifetime::temp_job);
    }
    by_temp_job_trim();
    for (const int number : temp_span<int>()) {
      std::fprintf(stderr, "an empty span has %d\n", number);
    }
    std::thread([] { std::memset(allocate(100, 1, Lifetime::temp_job), 1, 100); }).join();
    by_frame_end(0);
  }
}

constexpr struct {
  std::string_view name;
  void (*run)();
} cases[] = {
    {"write_after_frame", write_after_frame},
    {"write_to_a_cursors_block_after_frame", write_to_a_cursors_block_after_frame},
    {"write_after_scope", write_after_scope},
    {"write_to_a_block_outside_of_the_region_after_its_frame", write_to_a_block_outside_of_the_region_after_its_frame},
    {"write_to_a_freed_temp_job_block", write_to_a_freed_temp_job_block},
    {"write_to_a_freed_block_of_a_thread_that_ended", write_to_a_freed_block_of_a_thread_that_ended},
    {"deallocate_after_frame", deallocate_after_frame},
    {"temp_of_another_thread", temp_of_another_thread},
    {"stale_span", stale_span},
    {"temp_job_double_free", temp_job_double_free},
    {"overrun_a_temp_job_block", overrun_a_temp_job_block},
    {"temp_given_back_as_temp_job", temp_given_back_as_temp_job},
    {"temp_reallocated_as_temp_job", temp_reallocated_as_temp_job},
    {"first_temp_block_reallocated_on_another_thread", first_temp_block_reallocated_on_another_thread},
    {"rewind_while_allocating", rewind_while_allocating},
    {"leave_a_temp_job_block", leave_a_temp_job_block},
    {"right_use", right_use}};

}  // namespace

int main(int count, char** arguments) {
  for (const auto& one : cases) {
    if (count == 2 && one.name == arguments[1]) {
      one.run();
      return 0;
    }
  }
  std::fprintf(stderr, "usage: misuse_cases NAME\n");
  return 2;
}
