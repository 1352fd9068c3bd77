// Debian has no zstd for MinGW: planes are stored, and `blockyard convert` compresses them.
#include "journal/compressor.hpp"

namespace blockyard::journal {

const std::launch Compressor::launch = std::launch::deferred;

Compressor::Compressor(int) {}
Compressor::~Compressor() = default;

format::Codec Compressor::append(std::string& out, std::string_view bytes) {
  out += bytes;
  return format::Codec::stored;
}

Decompressor::Decompressor() = default;
Decompressor::~Decompressor() = default;

bool Decompressor::unpack(std::string_view, char*, std::size_t) { return false; }

}  // namespace blockyard::journal
