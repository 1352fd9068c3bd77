// What a writer of journals asks of the operating system: linux/ and windows/ have an answer each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace blockyard::journal::system {

/// Creates a file, `path` being UTF-8, to be written from its beginning; over an existing one only if `overwrite`. -1
/// with errno.
int create_file(const std::string& path, bool overwrite);
/// Writes up to so many bytes at the file's end. How many were written, or -1 with errno.
std::ptrdiff_t write_file(int file, const void* bytes, std::size_t count);
/// Overwrites bytes that were written before; false with errno where that is not possible, as in a pipe.
bool overwrite_in_file(int file, std::uint64_t offset, const void* bytes, std::size_t count);
/// 0, or -1 with errno.
int close_file(int file);

/// For memory at a multiple of 2 MiB. The system may ignore it; Windows always does.
void ask_for_huge_pages(void* memory, std::size_t bytes);

/// Now, in UTC.
std::tm utc_now();

}  // namespace blockyard::journal::system
