// The collector's loop: it accepts processes, empties their rings, writes their journals, and prints a summary at the
// end.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "record/channel.hpp"
#include "record/linux/collect/file_descriptor.hpp"
#include "record/linux/collect/forks.hpp"
#include "record/linux/collect/journal_names.hpp"
#include "record/linux/collect/session.hpp"
#include "record/linux/collect/socket.hpp"
#include "record/linux/collect/summary.hpp"

namespace blockyard::record {

struct ServerSettings {
  std::string socket;  ///< abstract name to listen on; empty: `connected` is the only program
  int connected = -1;  ///< a socket over which one program introduces itself
  std::string output;  ///< journal of the first process
  bool overwrite = false;
  bool addresses = false;
  std::optional<double> after;   ///< seconds from the first process's start to the window's
  std::optional<double> length;  ///< seconds that a window lasts
  bool wait = false;             ///< open no window before the signal or by_journal_start()
  int signal = 0;
  std::uint32_t slots = 1 << 14;       ///< most threads of a process at a time
  std::uint64_t ring_words = 1 << 19;  ///< of a large ring
  std::uint32_t stack_depth = 64;      ///< most frames of a stack; 0: no stacks
  std::string children;                ///< "no": the first process alone; a program's file name: those too; empty: all
  bool verify_stacks = false;          ///< the programs walk each stack a second time with libunwind
};

class Server {
 public:
  /// Throws journal::Error with a sentence.
  explicit Server(ServerSettings settings);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Runs until the last process has ended. Prints the summary when standard input ends: it names processes that are
  /// still running, and their journals go on.
  void run();

 private:
  struct Process {
    std::unique_ptr<Session> session;
    FileDescriptor pidfd;
    pid_t pid = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t fork_stamp = 0;
    std::uint64_t number = 0;  ///< of the process: its images have the same
  };

  void wait_for_something(int timeout_ms);
  /// False when all that came were forked children that announced themselves.
  bool accept_programs();
  /// False for such a child.
  bool welcome(const FileDescriptor& connection);
  /// A program is about to begin, in the caller's process or in one that it started.
  void expect_program(const Caller& caller);
  void record(const FileDescriptor& connection, Caller caller, std::uint64_t number);
  bool is_wanted(const Caller& caller, std::uint64_t process) const;
  /// The process's number: a new one, or that of its earlier images.
  std::uint64_t number_of(const Caller& caller);
  void end_earlier_image(pid_t pid);
  SessionSettings session_settings(const Caller& caller, std::uint64_t process);
  OutputSettings output_settings(const Caller& caller, std::uint64_t process);
  WindowPlan window_plan(std::uint64_t begin) const;
  void try_to_begin(Process& process);
  bool work();
  void finish(Process& process);
  void print_summary();

  ServerSettings settings_;
  StampClock clock_;
  bool fences_;
  double ns_per_stamp_ = 1;
  std::uint64_t backlog_words_;
  std::vector<FileDescriptor> listeners_;
  bool input_open_ = true;
  bool summary_printed_ = false;
  std::uint64_t next_key_;
  std::string recording_;          ///< as journal::Header::recording
  std::uint64_t first_begin_ = 0;  ///< stamp of the first process's handshake
  std::uint64_t next_process_ = 1;
  std::uint64_t first_process_ = 0;  ///< the first that records malloc
  std::set<pid_t> recorded_pids_;
  std::map<pid_t, std::string> to_come_;     ///< programs that were to begin in these processes
  std::vector<std::string> ended_journals_;  ///< of all but the first process
  JournalNames names_;
  Forks forks_;
  std::list<Process> processes_;
  Summary summary_;  ///< of the images that have ended
  std::shared_ptr<journal::Stacks> stacks_ = std::make_shared<journal::Stacks>();
  std::shared_ptr<TagTexts> tags_ = std::make_shared<TagTexts>();
};

}  // namespace blockyard::record
