#include "names/pe_file.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace blockyard::names {
namespace {

// Numbers of a file, by the offsets of Microsoft's "PE Format".
class PeFile {
 public:
  explicit PeFile(const std::string& path) : file_(path, std::ios::binary) {}

  template <class T>
  std::optional<T> at(std::uint64_t offset) {
    T value{};
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    if (!file_.read(reinterpret_cast<char*>(&value), sizeof value)) return std::nullopt;
    return value;
  }

  /// Where the headers begin; none where it is no file of 64-bit Windows.
  std::optional<std::uint64_t> headers() {
    constexpr std::uint16_t pe32_plus = 0x20b;
    const auto place = at<std::uint16_t>(0) == 0x5a4d ? at<std::uint32_t>(0x3c) : std::nullopt;
    if (!place || at<std::uint32_t>(*place) != 0x4550U || at<std::uint16_t>(*place + 24) != pe32_plus) {
      return std::nullopt;
    }
    return *place;
  }

  /// Where in the file the byte of a relative virtual address lies.
  std::optional<std::uint64_t> offset_of(std::uint64_t headers, std::uint32_t address) {
    const auto sections = at<std::uint16_t>(headers + 6);
    const auto optional_bytes = at<std::uint16_t>(headers + 20);
    if (!sections || !optional_bytes) return std::nullopt;
    for (std::uint64_t i = 0; i < *sections; ++i) {
      const std::uint64_t section = headers + 24 + *optional_bytes + 40 * i;
      const auto begin = at<std::uint32_t>(section + 12);
      const auto bytes = at<std::uint32_t>(section + 16);
      const auto place = at<std::uint32_t>(section + 20);
      if (begin && bytes && place && address >= *begin && address - *begin < *bytes) return *place + address - *begin;
    }
    return std::nullopt;
  }

 private:
  std::ifstream file_;
};

template <class T>
std::string hexadecimal(T value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (unsigned shift = 8 * sizeof value; shift != 0;) {
    shift -= 4;
    text += digits[value >> shift & 15];
  }
  return text;
}

std::optional<std::string> debug_id(PeFile& file, std::uint64_t headers) {
  constexpr std::uint32_t codeview = 2;
  constexpr std::uint32_t rsds = 0x53445352;
  constexpr std::uint64_t seventh_directory = 24 + 112 + 8 * 6;
  const auto address = file.at<std::uint32_t>(headers + seventh_directory);
  const auto bytes = file.at<std::uint32_t>(headers + seventh_directory + 4);
  const auto directory = address && *address != 0 ? file.offset_of(headers, *address) : std::nullopt;
  if (!directory || !bytes) return std::nullopt;
  for (std::uint64_t entry = *directory; entry + 28 <= *directory + *bytes; entry += 28) {
    const auto place = file.at<std::uint32_t>(entry + 24);
    if (!place) break;  // behind the file's end, whatever the directory says of its length
    if (file.at<std::uint32_t>(entry + 12) != codeview || file.at<std::uint32_t>(*place) != rsds) continue;
    const auto first = file.at<std::uint32_t>(*place + 4);
    const auto second = file.at<std::uint16_t>(*place + 8);
    const auto third = file.at<std::uint16_t>(*place + 10);
    const auto last = file.at<std::uint64_t>(*place + 12);
    const auto age = file.at<std::uint32_t>(*place + 20);
    if (!first || !second || !third || !last || !age) continue;
    return hexadecimal(*first) + hexadecimal(*second) + hexadecimal(*third) + hexadecimal(__builtin_bswap64(*last)) +
           hexadecimal(*age);
  }
  return std::nullopt;
}

// What a program prints that gets this text as its input; none where it can't be started or fails.
std::optional<std::string> output_of(const std::vector<std::string>& command, const std::string& input) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> given(std::tmpfile(), std::fclose);
  int ends[2];
  if (given == nullptr || std::fwrite(input.data(), 1, input.size(), given.get()) != input.size() ||
      std::fflush(given.get()) != 0 || ::pipe2(ends, O_CLOEXEC) != 0) {
    return std::nullopt;
  }
  std::rewind(given.get());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(given.get()), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  const bool started = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  char piece[1 << 16];
  for (ssize_t got = 0; started && (got = ::read(ends[0], piece, sizeof piece)) > 0;) {
    output.append(piece, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = -1;
  if (!started || ::waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  return output;
}

Functions functions_of(const nlohmann::json& symbols) {
  Functions functions;
  for (const auto& symbol : symbols) {
    Function function;
    function.name = symbol.value("FunctionName", "");
    function.file = symbol.value("FileName", "");
    function.line = symbol.value("Line", 0U);
    if (!function.name.empty()) functions.push_back(std::move(function));
  }
  return functions;
}

}  // namespace

bool is_pe(const std::string& path) { return PeFile(path).at<std::uint16_t>(0) == 0x5a4d; }

std::string pe_build_id(const std::string& path) {
  PeFile file(path);
  const auto headers = file.headers();
  if (!headers) return {};
  if (const auto id = debug_id(file, *headers)) return *id;
  const auto time = file.at<std::uint32_t>(*headers + 8);
  const auto size = file.at<std::uint32_t>(*headers + 24 + 56);
  const auto checksum = file.at<std::uint32_t>(*headers + 24 + 64);
  if (!time || !size || !checksum) return {};
  return hexadecimal(*time) + hexadecimal(*size) + hexadecimal(*checksum);
}

Resolved resolve_pe(const std::string& path, std::span<const std::uint64_t> addresses) {
  Resolved result;
  result.functions.resize(addresses.size());
  std::ostringstream asked;
  for (const std::uint64_t address : addresses) asked << "0x" << std::hex << address << '\n';
  const auto answer = output_of(
      {"llvm-symbolizer", "--relative-address", "--output-style=JSON", "--inlines", "--obj=" + path}, asked.str());
  if (!answer) {
    result.problem = "llvm-symbolizer, which reads programs of Windows, is not there or failed: install LLVM";
    return result;
  }
  std::istringstream lines(*answer);
  std::string line;
  for (Functions& functions : result.functions) {
    if (!std::getline(lines, line)) break;
    const auto parsed = nlohmann::json::parse(line, nullptr, false);
    const auto& first = parsed.is_array() && !parsed.empty() ? parsed[0] : parsed;
    if (!first.is_object() || !first.contains("Symbol")) continue;
    functions = functions_of(first["Symbol"]);
    if (functions.empty()) continue;
    const bool has_line = functions.front().line != 0;
    if (has_line || result.symbols == Symbols::none) result.symbols = has_line ? Symbols::lines : Symbols::symbols;
  }
  if (result.symbols == Symbols::none) result.problem = "the file has no symbols, and no PDB lies beside it";
  if (result.symbols == Symbols::symbols) result.problem = "the file has no debug information";
  return result;
}

}  // namespace blockyard::names
