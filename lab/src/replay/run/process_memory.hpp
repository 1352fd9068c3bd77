// The lab's own memory, populated in full before a run's clock starts, and the process's resident bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::replay {

/// Anonymous zeroed memory, populated and (where RLIMIT_MEMLOCK allows) locked when constructed, with huge pages where
/// the kernel gives them. Using it causes no page fault and hardly a TLB miss. Throws journal::Error when the system
/// does not have that much.
class PopulatedMemory {
 public:
  enum class Pages { ordinary, huge };

  PopulatedMemory() = default;
  explicit PopulatedMemory(std::size_t bytes, Pages pages = Pages::huge);
  ~PopulatedMemory();
  PopulatedMemory(PopulatedMemory&& other) noexcept;
  PopulatedMemory& operator=(PopulatedMemory&& other) noexcept;

  /// Aligned to 2 MiB with huge pages, else to 4 KiB.
  [[nodiscard]] char* begin() const { return begin_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  char* begin_ = nullptr;
  std::size_t size_ = 0;
};

/// A thread's stack: `bytes` mapped, the upper `populated` of them populated, a guard page below.
class Stack {
 public:
  explicit Stack(std::size_t bytes, std::size_t populated);
  ~Stack();
  Stack(Stack&& other) noexcept;
  Stack& operator=(Stack&&) = delete;

  [[nodiscard]] void* begin() const { return begin_ + guard_bytes; }
  [[nodiscard]] std::size_t size() const { return size_ - guard_bytes; }

 private:
  static constexpr std::size_t guard_bytes = 4096;
  char* begin_;
  std::size_t size_;
};

/// Populates the code and data of everything that is loaded now, and the calling thread's stack. Then neither the first
/// use of the lab's own code nor its stack faults, or counts as the allocator's memory, once the clock runs.
void populate_program();

/// Bytes of this process in physical memory (`/proc/self/statm`). Kernels before 6.16 may be off by 256 KiB per core.
/// Takes about 2 us; allocates nothing; callable from any thread.
std::uint64_t resident_bytes();

/// Forgets the highest resident_bytes() so far.
void reset_peak_resident_bytes();
/// The highest resident_bytes() since then, exact between samples too.
std::uint64_t peak_resident_bytes();

}  // namespace blockyard::replay
