// What is measured, all with the same interface. A subject is made at the beginning of a pass. Its functions are always
// inline, since a call would pass a subject's address, and so keep it in memory.
#pragma once

#include <cstddef>

#include "blockyard/adapter.h"
#include "blockyard/lifetime.hpp"

namespace blockyard::bench {

/// The loop and the clock alone: every block is the same address, like those of the lab's `null` allocator. The
/// compiler must have size and address in registers, as for the others.
class Nothing {
 public:
  explicit Nothing(const by_adapter*) : address_(buffer) {}
  [[gnu::always_inline]] void* allocate(std::size_t size) {
    asm volatile("" : "+r"(address_) : "r"(size));
    return address_;
  }
  [[gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment) {
    asm volatile("" : "+r"(address_) : "r"(size), "r"(alignment));
    return address_;
  }
  [[gnu::always_inline]] void free(void* block, std::size_t, std::size_t) { asm volatile("" : : "r"(block)); }
  static void end_frame() {}

 private:
  alignas(std::max_align_t) static inline std::byte buffer[1024];
  void* address_;
};

class Temp {
 public:
  explicit Temp(const by_adapter*) {}
  [[gnu::always_inline]] void* allocate(std::size_t size) { return temp_allocate(size); }
  [[gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment) {
    return temp_allocate(size, alignment);
  }
  [[gnu::always_inline]] void free(void* block, std::size_t, std::size_t) { temp_deallocate(block); }
  static void end_frame() { by_thread_end_frame(); }
};

class TempWithCursor {
 public:
  explicit TempWithCursor(const by_adapter*) {}
  [[gnu::always_inline]] void* allocate(std::size_t size) { return cursor_.allocate(size); }
  [[gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment) {
    return cursor_.allocate(size, alignment);
  }
  [[gnu::always_inline]] void free(void* block, std::size_t, std::size_t) { cursor_.deallocate(block); }
  static void end_frame() { by_thread_end_frame(); }

 private:
  temp_cursor<> cursor_;
};

class TempJob {
 public:
  explicit TempJob(const by_adapter*) {}
  [[gnu::always_inline]] void* allocate(std::size_t size) { return temp_job_allocate(size); }
  [[gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment) {
    return temp_job_allocate(size, alignment);
  }
  [[gnu::always_inline]] void free(void* block, std::size_t, std::size_t) { temp_job_deallocate(block); }
  static void end_frame() {}
};

class Adapter {
 public:
  explicit Adapter(const by_adapter* adapter) : adapter_(adapter) {}
  [[gnu::always_inline]] void* allocate(std::size_t size) { return adapter_->allocate(size); }
  [[gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment) {
    return adapter_->allocate_aligned(alignment, size);
  }
  [[gnu::always_inline]] void free(void* block, std::size_t, std::size_t) { adapter_->free(block); }
  static void end_frame() {}

 private:
  const by_adapter* adapter_;
};

/// An adapter whose allocator wants the size back.
class SizedAdapter {
 public:
  explicit SizedAdapter(const by_adapter* adapter) : adapter_(adapter) {}
  [[gnu::always_inline]] void* allocate(std::size_t size) { return adapter_->allocate(size); }
  [[gnu::always_inline]] void* allocate(std::size_t size, std::size_t alignment) {
    return adapter_->allocate_aligned(alignment, size);
  }
  [[gnu::always_inline]] void free(void* block, std::size_t size, std::size_t alignment) {
    adapter_->free_sized(block, size, alignment);
  }
  static void end_frame() {}

 private:
  const by_adapter* adapter_;
};

}  // namespace blockyard::bench
