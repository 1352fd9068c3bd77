#include "replay/results/npy.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t npy_preface = 10;  // magic, version, header length
constexpr std::size_t npy_alignment = 64;

}  // namespace

std::string npy_header(const std::string& descr, std::uint64_t rows) {
  std::string text = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (" + std::to_string(rows) + ",), }";
  std::size_t total = npy_preface + text.size() + 1;
  total = (total + npy_alignment - 1) / npy_alignment * npy_alignment;
  text.append(total - npy_preface - text.size() - 1, ' ');
  text.push_back('\n');
  std::string header = "\x93NUMPY";
  header.push_back('\1');
  header.push_back('\0');
  header.push_back(static_cast<char>(text.size()));
  header.push_back(static_cast<char>(text.size() >> 8));
  return header + text;
}

}  // namespace blockyard::replay
