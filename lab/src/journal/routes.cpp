#include "journal/routes.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "journal/format.hpp"
#include "journal/last_error.hpp"
#include "journal/output_file.hpp"

namespace blockyard::journal {
namespace {

constexpr std::array<char, 8> magic{'B', 'Y', 'R', 'O', 'U', 'T', 'E', '\n'};
constexpr std::uint32_t version = 1;
constexpr unsigned most_alignment_log2 = 31;

struct Head {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t routes;
  std::uint64_t blocks;
  std::uint64_t events;
  std::uint64_t hash;  ///< of all that follows
};
static_assert(sizeof(Head) == 40);

template <typename T>
std::string_view bytes_of(const std::vector<T>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(T)};
}

template <typename T>
void copy_out(std::string_view bytes, std::vector<T>& list) {
  if (!list.empty()) std::memcpy(list.data(), bytes.data(), list.size() * sizeof(T));
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Error(path + " can't be read: " + last_error());
  const std::streamoff size = file.tellg();
  if (size < 0 || !std::filesystem::is_regular_file(path)) throw Error(path + " is no file of routes");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(bytes.data(), size)) throw Error(path + " can't be read: " + last_error());
  return bytes;
}

}  // namespace

void check(const Routes& routes) {
  if (routes.routes.size() > most_routes) throw Error("there are more than " + number(most_routes) + " routes");
  for (std::size_t i = 0; i < routes.routes.size(); ++i) {
    const Route& route = routes.routes[i];
    const std::string who = "route " + number(i);
    const auto kind = static_cast<std::uint8_t>(route.kind);
    if (kind == 0 || kind > last_route_kind) throw Error(who + " has the unknown kind " + number(kind));
    if (route.alignment_log2 > most_alignment_log2) throw Error(who + " asks for an impossible alignment");
    if (route.bytes > most_block_bytes) throw Error(who + " " + asks_too_much(route.bytes));
    const bool needs_bytes = route.kind == RouteKind::block_pool || route.kind == RouteKind::reserve;
    if (needs_bytes && route.bytes == 0) throw Error(who + " has no size");
    if (route.zero != 0 || route.unused != 0) throw Error(who + " has bytes that must be 0");
  }
  for (std::size_t i = 0; i < routes.blocks.size(); ++i) {
    const RoutedBlock& block = routes.blocks[i];
    const std::string who = "block " + number(i) + " of the routes";
    if (block.event >= routes.events)
      throw Error(who + " names event " + number(block.event) + ", which does not exist");
    if (block.route >= routes.routes.size()) {
      throw Error(who + " names route " + number(block.route) + ", which does not exist");
    }
    if (block.grows > 1) throw Error(who + " has bytes that must be 0 or 1");
    if (i != 0 && block.event <= routes.blocks[i - 1].event) throw Error(who + " is out of order");
  }
}

void write_routes(const Routes& routes, const std::string& path) {
  check(routes);
  std::string rest(bytes_of(routes.routes));
  rest.append(bytes_of(routes.blocks));
  const Head head{
      magic,         version,           static_cast<std::uint32_t>(routes.routes.size()), routes.blocks.size(),
      routes.events, format::hash(rest)};
  OutputFile file(path, {}, true);
  const auto sink = ByteSink::create(file.temporary(), path);
  sink->write({reinterpret_cast<const char*>(&head), sizeof head});
  sink->write(rest);
  sink->finish();
  file.commit();
}

Routes read_routes(const std::string& path) {
  const std::string bytes = slurp(path);
  if (bytes.size() < sizeof(Head) || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
    throw Error(path + " is no file of routes; 'blockyard advise' writes them");
  }
  const Head head = format::get<Head>(bytes, 0);
  if (head.version != version) {
    throw Error(path + " has version " + number(head.version) + ", which only a newer Blockyard can read");
  }
  const std::string_view rest = std::string_view(bytes).substr(sizeof(Head));
  const std::uint64_t routes_bytes = std::uint64_t{head.routes} * sizeof(Route);
  const bool fits = routes_bytes <= rest.size() && head.blocks == (rest.size() - routes_bytes) / sizeof(RoutedBlock) &&
                    (rest.size() - routes_bytes) % sizeof(RoutedBlock) == 0;
  if (!fits || format::hash(rest) != head.hash) throw Error(path + " is damaged; write it again");
  Routes routes;
  routes.events = head.events;
  routes.routes.resize(head.routes);
  routes.blocks.resize(head.blocks);
  copy_out(rest, routes.routes);
  copy_out(rest.substr(routes_bytes), routes.blocks);
  try {
    check(routes);
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
  return routes;
}

Routes read_routes(const std::string& path, std::uint64_t events) {
  Routes routes = read_routes(path);
  if (routes.events != events) {
    throw Error(path + " belongs to a journal of " + number(routes.events) + " events, and this one has " +
                number(events));
  }
  return routes;
}

}  // namespace blockyard::journal
