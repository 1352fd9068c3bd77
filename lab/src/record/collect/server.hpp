// The collector: takes in processes, keeps their rings empty and their journals growing, and says at the end what it
// wrote.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/channel.hpp"
#include "record/collect/session.hpp"

namespace blockyard::record {

struct ServerSettings {
  std::string socket;  ///< abstract name to listen at; empty: `connected` is the only program
  int connected = -1;  ///< a socket over which one program says hello
  std::string output;  ///< journal of the first process
  bool overwrite = false;
  bool addresses = false;
  std::optional<double> after;   ///< seconds from the first process's start to the window's
  std::optional<double> length;  ///< seconds that a window lasts
  bool wait = false;             ///< open no window before the signal or by_journal_start()
  int signal = 0;
  std::uint32_t slots = 4096;
  std::uint64_t ring_words = 1 << 19;
  bool until_end_of_input = true;  ///< standard input's end says that no more processes are to be expected
};

class Server {
 public:
  /// Throws journal::Error with a sentence.
  explicit Server(ServerSettings settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Runs until the last process ended. Prints the summary, one line of JSON, when standard input ends: processes that
  /// still run then are named in it, and their journals go on.
  void run();

 private:
  struct Process {
    std::unique_ptr<Session> session;
    int pidfd = -1;
    pid_t pid = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t fork_stamp = 0;
  };

  void listen_at(const std::string& name);
  void wait_for_something(int timeout_ms);
  /// False when nobody but forked children came who announce themselves.
  bool accept_programs();
  /// False for such a child.
  bool welcome(int connection);
  /// A forked child that recorded nothing has just ended: it may have forked one, as daemons do, that nobody has heard of.
  bool newcomers_may_come() const;
  void stop_expecting(pid_t pid);
  void child_is_known(const Hello& hello);
  void end_earlier_image(pid_t pid);
  std::string own_path(pid_t pid, unsigned image) const;
  OutputSettings output_settings(pid_t pid, bool engine_only);
  WindowPlan window_plan() const;
  void try_to_begin(Process& process);
  bool work();
  void finish(Process& process);
  void keep_snapshot(std::uint64_t key, std::uint64_t stamp, ForkSnapshot snapshot);
  std::string summary() const;
  void tell_summary();

  ServerSettings settings_;
  StampClock clock_;
  bool fences_;
  double ns_per_stamp_ = 1;
  std::uint64_t backlog_words_;
  int listener_ = -1;
  bool input_open_ = true;
  bool told_ = false;
  std::uint64_t next_key_;
  std::uint64_t first_begin_ = 0;  ///< stamp of the first process's handshake
  pid_t first_pid_ = 0;
  bool first_name_taken_ = false;
  std::unordered_map<pid_t, unsigned> images_;  ///< process images seen of each process id
  std::list<Process> processes_;
  struct Expected {
    pid_t pid = 0;
    int pidfd = -1;
  };
  std::vector<Expected> expected_;                       ///< forked children that run and have recorded nothing yet
  std::uint64_t newcomers_until_ = 0;                    ///< monotonic ns
  using Fork = std::pair<std::uint64_t, std::uint64_t>;  ///< recording and stamp
  std::set<Fork> childless_forks_;  ///< seen, but nobody has heard of the child: it may not have run yet, or never will
  std::set<Fork> early_children_;   ///< children known before their fork's mark was merged
  std::map<std::pair<std::uint64_t, std::uint64_t>, ForkSnapshot> snapshots_;  ///< by recording and fork's stamp
  std::size_t snapshot_entries_ = 0;
  std::vector<std::string> finished_;  ///< summaries of images that ended, as JSON
};

}  // namespace blockyard::record
