#include "live/names.hpp"

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

namespace blockyard::live {

struct Names::Shared {
  std::mutex lock;
  std::condition_variable changed;
  std::vector<Module> modules;  ///< asked for, then with functions
  bool asked = false;
  bool answered = false;
  Clock::time_point next;  ///< not to be asked before
};

Names::Names() : shared_(std::make_shared<Shared>()) { std::thread(work, shared_, names::Resolver({})).detach(); }

Names::~Names() = default;

void Names::work(const std::shared_ptr<Shared>& shared, names::Resolver resolver) {
  // The program and the counting come first. On Linux this is the thread's own.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  for (;;) {
    std::unique_lock held(shared->lock);
    shared->changed.wait(held, [&] { return shared->asked; });
    std::vector<Module> modules = std::move(shared->modules);
    held.unlock();
    const auto begin = Clock::now();
    for (Module& module : modules) {
      try {
        module.functions = resolver.resolve(module.path, module.build_id, module.addresses).functions;
      } catch (const std::exception&) {
        module.functions.clear();  // its addresses stand for its functions, as in any journal
      }
    }
    held.lock();
    shared->next = Clock::now() + 20 * (Clock::now() - begin);
    shared->modules = std::move(modules);
    shared->asked = false;
    shared->answered = true;
  }
}

bool Names::exchange(journal::Stacks& stacks, bool at_once) {
  std::vector<Module> found;
  {
    const std::lock_guard held(shared_->lock);
    if (shared_->answered) {
      found = std::move(shared_->modules);
      shared_->modules.clear();
      shared_->answered = false;
      busy_ = false;
      next_ = shared_->next;
    }
  }
  bool came = false;
  for (const Module& module : found) {
    for (std::size_t i = 0; i < module.functions.size(); ++i) {
      std::vector<journal::NamedFunction> named;
      for (const names::Function& one : module.functions[i]) named.push_back({one.name, one.file, one.line});
      if (named.empty()) continue;
      stacks.set_names(module.frames[i], named);
      came = true;
    }
  }
  const auto frames = stacks.frames();
  known_ = static_cast<std::uint32_t>(frames.size());
  if (busy_ || asked_ == known_ || (!at_once && Clock::now() < next_)) return came;
  std::map<std::uint32_t, Module> modules;
  for (; asked_ < known_; ++asked_) {
    const journal::Frame& frame = frames[asked_];
    if (frame.module == journal::no_module || frame.module == journal::end_marker || !stacks.names(asked_).empty()) {
      continue;
    }
    Module& module = modules[frame.module];
    module.frames.push_back(asked_);
    module.addresses.push_back(frame.address);
  }
  if (modules.empty()) return came;
  {
    const std::lock_guard held(shared_->lock);
    for (auto& [index, module] : modules) {
      module.path = stacks.modules()[index].path;
      module.build_id = stacks.modules()[index].build_id;
      shared_->modules.push_back(std::move(module));
    }
    shared_->asked = true;
  }
  busy_ = true;
  shared_->changed.notify_one();
  return came;
}

bool Names::is_idle() const { return !busy_ && asked_ == known_; }

}  // namespace blockyard::live
