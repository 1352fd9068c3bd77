#include "made_logs.hpp"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <stdexcept>

#include "journal/flat_map.hpp"
#include "journal/reader.hpp"

namespace blockyard::bench {
namespace {

constexpr unsigned address_bits = 48;

struct Call {
  bool is_free;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t thread;
  std::uint64_t time_ns;
  std::uint64_t number;  ///< from 1
};

struct Form {
  std::string_view name;
  const char* heading;
  void (*put)(std::FILE* file, const Call& call);
};

constexpr std::array<Form, 7> forms{{
    {"text", "",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "f %016" PRIX64 " %" PRIu64 " %" PRIu64 "\n", call.address, call.thread, call.time_ns);
       } else {
         std::fprintf(file, "a %" PRIu64 " %016" PRIX64 " %" PRIu64 " %" PRIu64 "\n", call.size, call.address,
                      call.thread, call.time_ns);
       }
     }},
    {"unreal", "Operation ResultPointer PointerIn SizeIn AlignmentIn\n",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "Free 0 %" PRIu64 " 0 0\t# %" PRIu64 "\n", call.address, call.number);
       } else {
         std::fprintf(file, "Malloc %" PRIu64 " 0 %" PRIu64 " 0\t# %" PRIu64 "\n", call.address, call.size,
                      call.number);
       }
     }},
    {"aosp", "",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "%" PRIu64 ": free 0x%" PRIx64 "\n", call.thread, call.address);
       } else {
         std::fprintf(file, "%" PRIu64 ": malloc 0x%" PRIx64 " %" PRIu64 "\n", call.thread, call.address, call.size);
       }
     }},
    {"aosp-with-times", "",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "%" PRIu64 ": free 0x%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", call.thread, call.address,
                      call.time_ns, call.time_ns + 50);
       } else {
         std::fprintf(file, "%" PRIu64 ": malloc 0x%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", call.thread,
                      call.address, call.size, call.time_ns, call.time_ns + 50);
       }
     }},
    {"logalloc", "",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "4711 %" PRIu64 " free(0x%" PRIx64 ")\n", call.thread, call.address);
       } else {
         std::fprintf(file, "4711 %" PRIu64 " malloc(%" PRIu64 ")=0x%" PRIx64 "\n", call.thread, call.size,
                      call.address);
       }
     }},
    {"mtrace", "= Start\n",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "@ ./game:[0x11ce] - 0x%" PRIx64 "\n", call.address);
       } else {
         std::fprintf(file, "@ ./game:[0x11e1] + 0x%" PRIx64 " %#" PRIx64 "\n", call.address, call.size);
       }
     }},
    {"heaptrack", "v 10400 3\nX game\nI 1000 1000\nt 1000 0\n",
     [](std::FILE* file, const Call& call) {
       if (call.is_free) {
         std::fprintf(file, "- %" PRIx64 "\n", call.address);
       } else {
         std::fprintf(file, "+ %" PRIx64 " 1 %" PRIx64 "\n", call.size, call.address);
       }
     }},
}};

constexpr auto names = [] {
  std::array<std::string_view, forms.size()> all;
  for (std::size_t i = 0; i < forms.size(); ++i) all[i] = forms[i].name;
  return all;
}();

}  // namespace

std::span<const std::string_view> made_forms() { return names; }

void write_log(std::string_view name, const std::string& path, const std::vector<std::string>& journals,
               std::uint64_t lines) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  if (!file) throw std::runtime_error(path + " can't be written");
  const Form* form = nullptr;
  for (const Form& one : forms) form = one.name == name ? &one : form;
  if (form == nullptr) throw std::runtime_error("there is no form " + std::string(name));
  std::fputs(form->heading, file.get());
  std::uint64_t start_ns = 1;
  std::uint64_t number = 0;
  for (std::size_t round = 0; number != lines; ++round) {
    const auto source = journal::open(journals[round % journals.size()]);
    journal::FlatMap<std::uint64_t> addresses;
    const std::uint64_t tag = static_cast<std::uint64_t>(round) << address_bits;
    std::uint64_t time_ns = 0;
    for (auto events = source->next(); !events.empty() && number != lines; events = source->next()) {
      for (const auto& event : events) {
        if (!journal::gives_block(event.kind) && event.kind != journal::Kind::free) continue;
        time_ns = start_ns + event.time_ns;
        std::uint64_t address = event.address;
        if (event.kind == journal::Kind::free) {
          addresses.take(event.block + 1, address);
        } else {
          addresses.insert(event.block + 1, address);
        }
        form->put(file.get(), {.is_free = event.kind == journal::Kind::free,
                               .address = address | tag,
                               .size = event.size,
                               .thread = source->header().threads[event.thread].id,
                               .time_ns = time_ns,
                               .number = ++number});
        if (number == lines) break;
      }
    }
    start_ns = time_ns;
  }
}

}  // namespace blockyard::bench
