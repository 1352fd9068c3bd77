// blockyard-attach: makes a running program load the recorder, and call it.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "journal/command.hpp"
#include "record/channel.hpp"
#include "record/linux/attach/safe_point.hpp"
#include "record/linux/attach/stop.hpp"
#include "record/linux/attach/target.hpp"
#include "record/linux/attach/urgent.hpp"
#include "record/linux/attached.hpp"
#include "record/linux/imports.hpp"

namespace {

using namespace blockyard::record;
using namespace blockyard::record::attach;
using blockyard::journal::Error;
using Clock = std::chrono::steady_clock;

constexpr const char* library_name = "libblockyard-record.so";
constexpr std::chrono::seconds patience{10};

struct Settings {
  pid_t pid = 0;
  std::string library;  ///< here
  std::string as;       ///< a copy, as the program sees it
  std::string socket;   ///< as the program sees it
  bool detach = false;
};

/// The exported functions of the library's file.
class Library {
 public:
  explicit Library(const std::string& path) : path_(path) {
    elf_version(EV_CURRENT);
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    Elf* const elf = file < 0 ? nullptr : elf_begin(file, ELF_C_READ, nullptr);
    for (Elf_Scn* section = nullptr; elf != nullptr && (section = elf_nextscn(elf, section)) != nullptr;) {
      GElf_Shdr header{};
      if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
      Elf_Data* const data = elf_getdata(section, nullptr);
      GElf_Sym symbol{};
      for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
        const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
        if (name != nullptr && symbol.st_shndx != SHN_UNDEF) symbols_[name] = symbol.st_value;
      }
    }
    if (elf != nullptr) elf_end(elf);
    if (file >= 0) close(file);
    if (symbols_.empty()) throw Error(path + " can't be read");
  }

  std::uint64_t at(const char* name) const { return symbols_.at(name); }

  /// Where the program has loaded it; 0: nowhere. Throws where that is another version.
  std::uint64_t base_in(const Target& target) const {
    for (const Mapping& mapping : target.mappings()) {
      if (mapping.offset != 0 || !is_file(mapping, library_name)) continue;
      char there[1024] = {};
      char here[1024] = {};
      std::ifstream(path_, std::ios::binary).read(here, sizeof here);
      if (!target.read(mapping.begin, there, sizeof there)) continue;
      if (std::memcmp(here, there, sizeof here) != 0)
        throw Error("process " + std::to_string(target.pid()) +
                    " has loaded another version of the recorder; attach with that one, or restart the program");
      return mapping.begin;
    }
    return 0;
  }

 private:
  std::string path_;
  std::map<std::string, std::uint64_t> symbols_;
};

/// How long a thread of the program stood still.
struct Stood {
  double longest_ms = 0;
  double in_call_ms = 0;
};

// Whether the call that was put into the thread is over.
bool is_back(const Target& target, pid_t thread, std::uint64_t during) {
  return target.signals("SigBlk", thread) != during;
}

// Has a thread of the program call a function of its. Throws where no thread can be found for it in time, or where the
// program ends.
void call(const Target& target, const std::function<std::uint64_t(const Code&)>& function, const std::string& text,
          std::uint64_t second, Stood& stood) {
  const auto give_up = Clock::now() + patience;
  std::string why = "it has no thread";
  std::unique_ptr<Code> code;
  for (unsigned attempt = 0; Clock::now() < give_up; ++attempt) {
    if (code == nullptr || why == "it loads and unloads libraries") code = std::make_unique<Code>(target);
    if (code->return_from_signal() == 0 || function(*code) == 0)
      throw Error("process " + std::to_string(target.pid()) + " has a C library in which no call can be put");
    const std::uint64_t address = function(*code);
    const auto threads = target.threads();
    if (threads.empty()) throw Error("process " + std::to_string(target.pid()) + " has ended");
    for (const pid_t thread : threads) {
      std::uint64_t during = 0;
      const Urgent urgent;
      const auto begin = Clock::now();
      {
        Stop stop(target, thread);
        if (!stop.is_stopped()) continue;
        std::string refusal = code->refusal(stop);
        if (refusal.empty()) {
          const std::uint64_t mask = mask_during_call(target.signals("SigBlk", thread));
          refusal = stop.call(address, text, second, code->return_from_signal());
          if (refusal.empty()) during = mask;
        }
        if (!refusal.empty()) why = refusal;
      }
      const auto let_go = Clock::now();
      stood.longest_ms = std::max(stood.longest_ms, std::chrono::duration<double, std::milli>(let_go - begin).count());
      if (during == 0) continue;
      const auto most = Clock::now() + 3 * patience;
      while (!is_back(target, thread, during)) {
        if (Clock::now() > most)
          throw Error("process " + std::to_string(target.pid()) + " does not come back from a call of the recorder");
        // The call may need a lock that a thread has which stopped only now.
        let_late_threads_go();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
      stood.in_call_ms =
          std::max(stood.in_call_ms, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200 + 100 * std::min(attempt, 50u)));
  }
  throw Error("no thread of process " + std::to_string(target.pid()) + " came to a point where a call is safe within " +
              std::to_string(patience.count()) + " s (" + why + "); nothing was changed, try again");
}

/// Makes changes of the program's code, or takes them back, while all its threads stand still.
class CodeChanges {
 public:
  CodeChanges(const Target& target, const AttachReport& report) : target_(target), changes_(report.change_count) {
    if (!changes_.empty() && !target.read(report.changes, changes_.data(), changes_.size() * sizeof changes_[0]))
      changes_.clear();
  }

  /// False where nothing is to be changed or is not what it was, or where the threads do not stop in time.
  bool make(bool back, Stood& stood) const {
    std::map<std::uint64_t, std::vector<std::byte>> pages;
    for (const CodeChange& change : changes_) {
      for (std::size_t i = 0; i < sizeof change.before; ++i) {
        const std::uint64_t at = change.at + i;
        std::vector<std::byte>& page = pages[at / page_bytes];
        if (page.empty()) {
          page.resize(page_bytes);
          if (!target_.read(at / page_bytes * page_bytes, page.data(), page_bytes)) return false;
        }
        std::byte& is = page[at % page_bytes];
        const std::byte from = byte_of(back ? change.after : change.before, i);
        const std::byte to = byte_of(back ? change.before : change.after, i);
        if (is != from && is != to) return false;
        is = to;
      }
    }
    if (pages.empty()) return false;
    const auto give_up = Clock::now() + patience;
    for (auto most = std::chrono::milliseconds(5); Clock::now() < give_up;
         most = std::min(2 * most, std::chrono::milliseconds(100))) {
      const Urgent urgent;
      const auto begin = Clock::now();
      bool done = false;
      {
        const AllStopped all(target_, begin + most);
        done = all.is_complete();
        for (const auto& [number, bytes] : pages) {
          if (done) done = target_.write(number * page_bytes, bytes.data(), page_bytes);
        }
      }
      stood.longest_ms =
          std::max(stood.longest_ms, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
      if (done) return true;
      let_late_threads_go();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  static std::byte byte_of(std::int32_t value, std::size_t i) {
    return static_cast<std::byte>(static_cast<std::uint32_t>(value) >> 8 * i);
  }

  const Target& target_;
  std::vector<CodeChange> changes_;
};

void run(const Settings& settings) {
  const Target target(settings.pid);
  target.refuse_unfit();
  const Library library(settings.library);
  const std::string who = "process " + std::to_string(settings.pid);
  Stood stood;
  std::uint64_t base = library.base_in(target);
  if (base == 0 && !settings.detach) {
    call(
        target, [](const Code& code) { return code.in_libc("dlopen"); }, settings.as,
        RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE, stood);
    base = library.base_in(target);
    if (base == 0)
      throw Error(who + " could not load the recorder from " + settings.as +
                  ": memory for thread variables (static TLS) or for the library may be short, or forbidden");
  }
  if (base == 0) throw Error(who + " has not loaded the recorder");
  const auto report_now = [&] {
    AttachReport report{};
    target.read(base + library.at("by_attach_report"), &report, sizeof report);
    return report;
  };
  const auto call_here = [&](const char* name) {
    const std::uint64_t function = base + library.at(name);
    const std::uint32_t before = report_now().calls;
    call(
        target, [function](const Code&) { return function; }, settings.socket, 0, stood);
    const AttachReport report = report_now();
    if (report.calls == before) throw Error(who + " ended while it was attached to");
    return report;
  };
  const auto change_code = [&](const AttachReport& report, bool back) {
    const std::uint64_t is_changed = CodeChanges(target, report).make(back, stood) ? !back : report.is_changed;
    target.write(base + library.at("by_attach_report") + offsetof(AttachReport, is_changed), &is_changed,
                 sizeof is_changed);
  };
  // Calls that lead to the hooks while nothing records just go on to where they led before.
  if (settings.detach) {
    change_code(report_now(), true);
    call_here("by_detach");
  } else {
    change_code(call_here("by_plan"), false);
    const AttachReport report = call_here("by_attach");
    if (report.failed != 0) {
      change_code(report, true);
      throw Error(who + " can't be recorded: " + std::string(report.text));
    }
  }
  std::printf("{\"stopped_ms\": %.3f, \"in_call_ms\": %.3f}\n", stood.longest_ms, stood.in_call_ms);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Makes a running program load the recorder. Started by `blockyard record --pid`.");
  app.add_option("pid", settings.pid, "The process")->required();
  app.add_option("--library", settings.library, "The recorder's file")->required();
  app.add_option("--as", settings.as, "A copy of it, as the program sees it");
  app.add_option("--socket", settings.socket, "The collector's socket, as the program sees it");
  app.add_flag("--detach", settings.detach, "End the recording, and let the program run on");
  return blockyard::journal::command::run(app, argc, argv, [&] { run(settings); });
}
