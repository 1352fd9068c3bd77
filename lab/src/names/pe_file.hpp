// Programs and DLLs of Windows: what they are called by in a journal, and their names, which llvm-symbolizer reads from
// PDB files, DWARF and COFF symbols.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "names/resolver.hpp"

namespace blockyard::names {

/// Whether the file begins as one of DOS or Windows does.
bool is_pe(const std::string& path);

/// As the recorder on Windows writes it (record/windows/modules.cpp): GUID and age of the debug information, or time
/// stamp, size and checksum. Lower-case hexadecimal; empty when the file is none of Windows.
std::string pe_build_id(const std::string& path);

/// The functions at addresses relative to where the module was loaded. Starts llvm-symbolizer, which finds a PDB beside
/// the file.
Resolved resolve_pe(const std::string& path, std::span<const std::uint64_t> addresses);

}  // namespace blockyard::names
