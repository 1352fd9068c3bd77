// Runs a test on a new thread, whose temp region no other test has used.
#pragma once

#include <thread>

template <class Body>
void on_a_new_thread(Body&& body) {
  std::thread(body).join();
}
