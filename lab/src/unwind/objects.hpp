// The loaded ELF objects of this process: which one an address lies in, and where its unwind tables are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockyard::unwind {

/// One loaded object. Its memory stays valid until the object is unloaded. Owns nothing.
struct Object {
  std::uint64_t begin = 0;  ///< of its mapping
  std::uint64_t end = 0;
  std::uint64_t bias = 0;                      ///< what the loader added to the file's addresses
  const char* path = nullptr;                  ///< the loader's; "" for the program itself
  const std::uint8_t* header = nullptr;        ///< .eh_frame_hdr; nullptr when it has none
  const std::uint8_t* tables_begin = nullptr;  ///< the readable segment in which the header and .eh_frame lie
  const std::uint8_t* tables_end = nullptr;
  const void* identity = nullptr;  ///< differs from that of every other object that is loaded at the same time
};

/// The object whose mapping contains `address`. False when there is none: code made at run time, or no code at all.
/// With glibc 2.35 and later it takes no lock, except for an object with holes between its segments. Otherwise it takes
/// the lock under which the loader changes its list, which the loader never holds while it runs a program's code.
/// Allocates nothing.
bool find_object(std::uint64_t address, Object& found);

/// Whether an object with this file name is loaded. Takes the loader's lock, as find_object() may. Allocates nothing.
bool is_loaded(const char* file_name);

/// Makes find_object() lock-free: `function` is glibc's _dl_find_object, or nullptr where there is none.
void use_find_object(void* function);

/// Copies the object's build-id, at most `capacity` bytes. Returns how many it has; 0 for none.
std::size_t build_id_of(const Object& object, std::uint8_t* into, std::size_t capacity);

}  // namespace blockyard::unwind
