// What is counted: runs under libblockyard-malloc.so by preload, stepped through by the tracer.
#include "operations.hpp"

#include <malloc.h>

#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

namespace golden {
namespace {

// The tracer stops at each and lets it go no further.
void mark() { std::raise(SIGUSR1); }

template <class Operation>
void count(Operation&& operation) {
  mark();
  operation();
  mark();
}

void* volatile kept;  // so that no call can be left out

}  // namespace

void run_operations() {
  // Warm: every symbol is bound, the size class has a slab with freed blocks and with some never used.
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(std::malloc(64));
    }
    blocks.push_back(std::calloc(1, 64));
    blocks.back() = std::realloc(blocks.back(), 60);
    blocks.push_back(std::aligned_alloc(64, 64));
    malloc_usable_size(blocks.back());
    for (void* block : blocks) {
      std::free(block);
    }
  }
  void* block = nullptr;
  count([&] { block = std::malloc(64); });
  std::vector<void*> emptied(64);  // more than were freed: the list is empty afterwards
  for (void*& each : emptied) {
    each = std::malloc(64);
  }
  void* fresh = nullptr;
  count([&] { fresh = std::malloc(64); });
  count([&] { std::free(block); });
  void* others[38] = {};
  for (void*& each : others) {
    each = std::malloc(200);
  }
  for (int i = 1; i < 38; ++i) {
    std::free(others[i]);  // more than are cached and deferred
  }
  count([&] { std::free(others[0]); });
  // Those cached, those of the slab's 73 that were never handed out, and one that looks at the cache's limit.
  for (int i = 0; i < 12 + 73 - 38 + 1; ++i) {
    kept = std::malloc(200);
  }
  count([&] { kept = std::malloc(200); });
  count([&] { block = std::calloc(1, 64); });
  block = std::realloc(block, 60);
  count([&] { block = std::realloc(block, 64); });
  void* aligned = nullptr;
  std::free(fresh);
  count([&] { aligned = std::aligned_alloc(64, 64); });
  count([&] { kept = reinterpret_cast<void*>(malloc_usable_size(aligned)); });
  // Slabs of 5, 10 and 21 blocks of a thread that has ended: its heap is parked, its blocks are remote to this
  // thread, which has a heap already and does not take that one over.
  void* remote[40] = {};
  std::thread([&] {
    for (void*& each : remote) {
      each = std::malloc(3000);
    }
  }).join();
  count([&] { std::free(remote[0]); });
  // Five are cached and eight deferred: from the 14th on each free sends the one eight before it to its slab.
  // The 24th is the first to send one into the third slab, which announces that.
  for (int i = 1; i < 23; ++i) {
    std::free(remote[i]);
  }
  count([&] { std::free(remote[23]); });
  count([&] { std::free(remote[24]); });
  void* turn[500] = {};
  for (int round = 0; round < 3; ++round) {
    for (void*& each : turn) {
      each = std::malloc(32);
    }
    for (void* each : turn) {
      std::free(each);
    }
  }
  for (int i = 0; i < 100; ++i) {
    kept = std::malloc(32);
  }
  count([&] { kept = std::malloc(32); });
  kept = block;
  std::_Exit(0);
}

}  // namespace golden
