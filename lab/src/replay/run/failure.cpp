#include "replay/run/failure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace blockyard::replay {
namespace {

// None of this is on the heap, which the allocator under test may share or have broken.
struct Prepared {
  char part[4096];
  char path[4096];
  char samples_part[4096];  // a streamed run writes them while it runs
  char frame_ends_part[4096];
  char before[16384];
  char after[16384];
};
Prepared prepared;
std::atomic_flag failing = ATOMIC_FLAG_INIT;

void keep(char* into, std::size_t room, const std::string& text) { std::snprintf(into, room, "%s", text.c_str()); }

void write_all(int file, const char* text, std::size_t size) {
  while (size != 0) {
    const ssize_t written = write(file, text, size);
    if (written <= 0) return;
    text += written;
    size -= static_cast<std::size_t>(written);
  }
}

void write_run_json(const SafeText& reason) {
  if (prepared.path[0] == '\0') return;
  unlink(prepared.samples_part);
  unlink(prepared.frame_ends_part);
  const int file = open(prepared.part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return;
  write_all(file, prepared.before, std::strlen(prepared.before));
  for (const char* at = reason.c_str(); *at != '\0'; ++at) {
    if (*at == '"' || *at == '\\') write_all(file, "\\", 1);
    write_all(file, static_cast<unsigned char>(*at) < ' ' ? " " : at, 1);
  }
  write_all(file, prepared.after, std::strlen(prepared.after));
  close(file);
  rename(prepared.part, prepared.path);
}

}  // namespace

SafeText& SafeText::operator<<(const char* text) {
  while (*text != '\0' && size_ + 1 < sizeof text_) text_[size_++] = *text++;
  return *this;
}

SafeText& SafeText::operator<<(std::uint64_t number) {
  char digits[21];
  char* at = digits + sizeof digits - 1;
  *at = '\0';
  do {
    *--at = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return *this << at;
}

void prepare_failure(const std::string& folder, const std::string& before, const std::string& after) {
  keep(prepared.part, sizeof prepared.part, folder + "/run.json.part");
  keep(prepared.samples_part, sizeof prepared.samples_part, folder + "/samples.npy.part");
  keep(prepared.frame_ends_part, sizeof prepared.frame_ends_part, folder + "/frame_ends.npy.part");
  keep(prepared.before, sizeof prepared.before, before);
  keep(prepared.after, sizeof prepared.after, after);
  keep(prepared.path, sizeof prepared.path, folder + "/run.json");
}

bool report_failure(const SafeText& reason) {
  if (failing.test_and_set()) return false;
  write_run_json(reason);
  SafeText line;
  line << "blockyard: " << reason.c_str() << "\n";
  write_all(STDERR_FILENO, line.c_str(), line.size());
  return true;
}

void discard_results(const char* folder) {
  for (const char* name : {"/run.json.part", "/samples.npy.part", "/frame_ends.npy.part", "/memory.npy.part",
                           "/blocks.npy.part", "/samples.npy", "/frame_ends.npy", "/memory.npy", "/blocks.npy"}) {
    SafeText path;
    path << folder << name;
    unlink(path.c_str());
  }
  rmdir(folder);
}

void abandon_run(const char* folder, const char* sentence) {
  if (!failing.test_and_set()) {
    discard_results(folder);
    SafeText line;
    line << "blockyard: " << sentence << "\n";
    write_all(STDERR_FILENO, line.c_str(), line.size());
    _exit(1);
  }
  for (;;) pause();
}

void fail_run(const SafeText& reason) {
  if (report_failure(reason)) _exit(1);
  for (;;) pause();
}

}  // namespace blockyard::replay
