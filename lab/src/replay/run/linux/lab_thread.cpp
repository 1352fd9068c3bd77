#include "replay/run/lab_thread.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "journal/event.hpp"
#include "replay/run/clock_ns.hpp"

namespace blockyard::replay {
namespace {

constexpr std::size_t stack_bytes = std::size_t{2} << 20;
constexpr std::size_t stack_populated = std::size_t{128} << 10;

}  // namespace

int create_thread(pthread_t& thread, const Stack& stack, void* (*work)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack.begin(), stack.size());
  const int failed = pthread_create(&thread, &attributes, work, argument);
  pthread_attr_destroy(&attributes);
  return failed;
}

LabThread::LabThread() : stack_(stack_bytes, stack_populated) {}

void LabThread::start(void (*work)(void*), void* argument) {
  work_ = work;
  argument_ = argument;
  const int failed = create_thread(thread_, stack_, run, this);
  if (failed != 0) throw journal::Error(std::string("the system refuses a thread: ") + std::strerror(failed));
  started_ = true;
}

void* LabThread::run(void* self) {
  const sched_param parameters{};
  sched_setscheduler(0, SCHED_BATCH, &parameters);
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
  const auto* thread = static_cast<const LabThread*>(self);
  thread->work_(thread->argument_);
  return nullptr;
}

void LabThread::join() {
  if (!started_) return;
  started_ = false;
  pthread_join(thread_, nullptr);
}

std::uint64_t LabThread::cpu_ns() const {
  clockid_t clock{};
  return started_ && pthread_getcpuclockid(thread_, &clock) == 0 ? clock_ns(clock) : 0;
}

}  // namespace blockyard::replay
