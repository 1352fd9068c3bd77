// A test's own thread: no other test has used its temp region.
#pragma once

#include <thread>

template <class Body>
void on_a_new_thread(Body&& body) {
  std::thread(body).join();
}
