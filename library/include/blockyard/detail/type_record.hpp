/// Type records: how the leak report names the types of static blocks. Included by static_block_allocator.hpp.
///
/// Each type that a TypedStaticBlockAllocator serves has a record of its name and stride, entered in a list at start-up
/// at no cost to any call. Live objects are counted per type in two cases: in watched processes
/// (library/src/block/watch.hpp; BLOCKYARD_LEAKS=1 in the environment makes one), by the allocator's slow path; and in
/// code compiled with BLOCKYARD_COUNT_TYPES=1, the default in checked builds, by an atomic addition per call. Otherwise
/// the report counts blocks per size and lists the types of that size.
#ifndef BLOCKYARD_DETAIL_TYPE_RECORD_HPP
#define BLOCKYARD_DETAIL_TYPE_RECORD_HPP

#include "blockyard/detail/cpp20.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "blockyard/detail/block_slab.hpp"

#ifndef BLOCKYARD_COUNT_TYPES
#if defined(BLOCKYARD_CHECKED) && BLOCKYARD_CHECKED
#define BLOCKYARD_COUNT_TYPES 1
#else
#define BLOCKYARD_COUNT_TYPES 0
#endif
#endif

namespace blockyard::block {

struct TypeRecord;

extern "C" {
/// Adds a record to the process's list unless it is there. Lock-free; once per type and shared object.
BY_API void by_block_record_type(TypeRecord* record) noexcept;
}

/// These throw the exception that they name, out of line.
[[noreturn]] BY_API void throw_bad_alloc();
[[noreturn]] BY_API void throw_bad_array_new_length();
[[noreturn]] BY_API void throw_invalid_argument(const char* what);
[[noreturn]] BY_API void throw_out_of_range(const char* what);
/// `block`, or std::bad_alloc where that is null.
inline void* or_bad_alloc(void* block) {
  if (block == nullptr) [[unlikely]] {
    throw_bad_alloc();
  }
  return block;
}

struct TypeRecord {
  std::string_view name;
  std::size_t stride = 0;               ///< bytes
  bool counted = false;                 ///< whether `live` is right in any process
  std::uint16_t number = 0;             ///< in watched processes: the type's number in the table of blocks
  std::atomic<std::ptrdiff_t> live{0};  ///< objects
  TypeRecord* next = nullptr;           ///< in the process's list
};

/// The compiler's name of T, without run-time type information. TypeName keeps its characters and nothing else of the
/// signature.
template <class T>
consteval std::string_view find_type_name() {
  const std::string_view pretty = __PRETTY_FUNCTION__;
  const std::size_t begin = pretty.find("T = ") + 4;
  const std::size_t semicolon = pretty.find("; std::string_view", begin);
  return pretty.substr(begin, (semicolon != std::string_view::npos ? semicolon : pretty.rfind(']')) - begin);
}
template <class T>
struct TypeName {
  static constexpr std::size_t length = find_type_name<T>().size();
  // GCC would align longer arrays to 32.
  alignas(1) static constexpr std::array<char, length> characters = [] {
    std::array<char, length> copy{};
    for (std::size_t i = 0; i < length; ++i) {
      copy[i] = find_type_name<T>()[i];
    }
    return copy;
  }();
};
/// A node may name its container instead: that name is shorter and says more.
template <class T>
requires requires { typename T::ReportedAs; }
struct TypeName<T> : TypeName<typename T::ReportedAs> {};

template <class T>
struct TypeRecordOf {
  static inline constinit TypeRecord record{std::string_view(TypeName<T>::characters.data(), TypeName<T>::length),
                                            stride_of(sizeof(T), alignof(T)), BLOCKYARD_COUNT_TYPES != 0};
  static inline const bool entered = (by_block_record_type(&record), true);
};

/// Counts objects of T where types are counted. Naming `entered` makes the start-up enter the record in the list.
template <class T>
inline void count_type([[maybe_unused]] std::ptrdiff_t by) noexcept {
  static_cast<void>(&TypeRecordOf<T>::entered);
#if BLOCKYARD_COUNT_TYPES
  TypeRecordOf<T>::record.live.fetch_add(by, std::memory_order_relaxed);
#endif
}

}  // namespace blockyard::block

#endif
