#include "record/linux/attach/urgent.hpp"

#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace {

using blockyard::record::attach::Urgent;

// A policy that this user may not choose is not tried.
void expect_given_back(int policy, int priority) {
  std::thread([=] {
    sched_param given{priority};
    if (sched_setscheduler(0, policy, &given) != 0) return;
    { const Urgent urgent; }
    EXPECT_EQ(sched_getscheduler(0), policy);
    sched_getparam(0, &given);
    EXPECT_EQ(given.sched_priority, priority);
  }).join();
}

TEST(Urgent, gives_back_the_policy_that_it_found) {
  for (const int policy : {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_BATCH | SCHED_RESET_ON_FORK})
    expect_given_back(policy, 0);
  for (const int policy : {SCHED_FIFO, SCHED_RR}) expect_given_back(policy, 5);
}

}  // namespace
