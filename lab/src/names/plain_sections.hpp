// Debug sections that are compressed with zstd, which elfutils before 0.190 can't read.
#pragma once

#include <string>

namespace blockyard::names {

/// Whether the ELF file has such a section. False for what is no ELF file.
bool has_zstd_sections(int file);

/// A copy of the ELF file in memory with those sections decompressed; the caller closes it. -1 with `problem` set to a
/// clause when the file can't be read, a section is damaged, or memory is exhausted.
int with_plain_sections(int file, std::string& problem);

}  // namespace blockyard::names
