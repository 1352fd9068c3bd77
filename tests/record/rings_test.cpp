// Rings and watermark: threads write while the collector's side drains, with pauses put where a preemption would hurt
// most.
#include "record/linux/collect/rings.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_set>
#include <vector>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "record/collect/merge.hpp"
#include "record/linux/collect/session.hpp"
#include "record/linux/ring.hpp"

namespace {

using namespace blockyard::record;

thread_local std::minstd_rand delay_random(1);

/// Pauses now and then at each point of an append, for longer than the collector takes to look.
struct RandomDelay {
  static void pause() {
    if (delay_random() % 400 == 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_random() % 300));
  }
  static void after_claim() { pause(); }
  static void after_stamp() { pause(); }
  static void before_publish() { pause(); }
};

/// A planted bug: no claim says that a record is under way.
struct NoClaim : RandomDelay {
  static void after_claim() {
    slot->claim.store(slot->head.load());
    pause();
  }
  static inline thread_local Slot* slot = nullptr;
};

/// Fails the test at once when an address is live twice, a free finds nothing, or a stamp falls.
class Checker : public RecordSink {
 public:
  void apply(std::uint32_t, std::uint64_t stamp, const std::uint64_t* record) override {
    falls += stamp < last ? 1 : 0;
    last = stamp;
    ++records;
    const std::uint64_t address = payload_of(record[0]);
    if (kind_of(record[0]) == RecordKind::free) {
      unknown_frees += live.erase(address) == 0 ? 1 : 0;
    } else {
      twice_live += live.insert(address).second ? 0 : 1;
    }
  }
  bool is_possible(const std::uint64_t* record) const override {
    return live.contains(payload_of(record[0])) == (kind_of(record[0]) == RecordKind::free);
  }
  std::uint64_t last = 0;
  std::uint64_t records = 0;
  int falls = 0;
  int unknown_frees = 0;
  int twice_live = 0;
  std::unordered_set<std::uint64_t> live;
};

/// Keeps the addresses in their order.
class Recorder : public RecordSink {
 public:
  void apply(std::uint32_t, std::uint64_t, const std::uint64_t* record) override {
    addresses.push_back(payload_of(record[0]));
  }
  bool is_possible(const std::uint64_t*) const override { return true; }
  std::vector<std::uint64_t> addresses;
};

/// A stand-in for malloc that hands the same few addresses from thread to thread as fast as it can: the newest free one
/// first, so that a wrong order shows at once.
class HotAllocator {
 public:
  explicit HotAllocator(std::uint64_t blocks) {
    for (std::uint64_t i = 1; i <= blocks; ++i) free_.push_back(i * 16);
  }
  std::uint64_t allocate() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return 0;
    const std::uint64_t address = free_.back();
    free_.pop_back();
    return address;
  }
  void release(std::uint64_t address) {
    const std::lock_guard lock(mutex_);
    free_.push_back(address);
  }

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> free_;
};

/// What a recorded thread does to get a slot, in a process that has mapped all of the region.
Producer register_thread(const Region& region, std::uint32_t tid, bool fences) {
  Control& control = region.control();
  for (;;) {
    for (std::uint32_t index = 0; index < control.slot_count; ++index) {
      std::uint32_t none = 0;
      Slot& slot = region.slot(index);
      if (!slot.owner.compare_exchange_strong(none, tid)) continue;
      slot.serial.fetch_add(1);
      std::uint32_t used = control.slots_used.load();
      while (used < index + 1 && !control.slots_used.compare_exchange_weak(used, index + 1)) {
      }
      Producer producer{};
      producer.bind(slot, control.small_words, StampClock::cycles, fences);
      return producer;
    }
    std::this_thread::yield();
  }
}

template <typename Delay>
void churn(const Region& region, HotAllocator& allocator, std::uint32_t tid, int rounds, bool fences) {
  Producer producer = register_thread(region, tid, fences);
  NoClaim::slot = producer.slot;
  delay_random.seed(tid);
  std::vector<std::uint64_t> mine;
  const auto append = [&]<When when>(std::integral_constant<When, when>, RecordKind kind, std::uint64_t address) {
    while (!producer.has_room(3)) std::this_thread::yield();
    producer.append<when, Delay>(pack(kind, address), pack_size(16, 0));
  };
  for (int i = 0; i < rounds; ++i) {
    if (const std::uint64_t address = allocator.allocate(); address != 0) {
      append(std::integral_constant<When, When::after>{}, RecordKind::allocate, address);
      mine.push_back(address);
    }
    if (mine.size() > 2 || i % 3 == 0) {
      if (mine.empty()) continue;
      append(std::integral_constant<When, When::before>{}, RecordKind::free, mine.back());
      allocator.release(mine.back());
      mine.pop_back();
    }
  }
  for (const std::uint64_t address : mine) {
    append(std::integral_constant<When, When::before>{}, RecordKind::free, address);
    allocator.release(address);
  }
}

template <typename Delay>
Checker collect_while_threads_churn(int threads, int rounds, bool fences) {
  constexpr std::uint64_t small_ring_words = 1024;  // so that threads also meet full rings
  const SharedRegion shared(Layout(64, 1, small_ring_words, 4 * small_ring_words));
  Rings rings(shared.region(), 0, stamp_after(StampClock::cycles));
  HotAllocator allocator(8);
  Checker checker;
  std::atomic<int> running{threads};
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      churn<Delay>(shared.region(), allocator, static_cast<std::uint32_t>(i + 1), rounds, fences);
      --running;
    });
  }
  bool last_look = false;
  while (!last_look) {
    last_look = running == 0;
    const std::uint64_t now = stamp_after(StampClock::cycles);
    expedited_barrier();
    rings.drain(now, last_look);
    merge(rings.lanes(), rings.watermark(), ~std::size_t{0}, checker);
  }
  for (std::thread& worker : workers) worker.join();
  return checker;
}

class Order : public testing::TestWithParam<bool> {
 protected:
  // The asymmetric barrier needs this process to be registered, as the recorder registers the program.
  static bool fences() {
    if (GetParam()) return true;
    EXPECT_TRUE(expedited_barrier_available()) << "this kernel has no expedited membarrier";
    EXPECT_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0), 0);
    return false;
  }
  static void expect_order(const Checker& checker) {
    EXPECT_EQ(checker.twice_live, 0);
    EXPECT_EQ(checker.unknown_frees, 0);
    EXPECT_EQ(checker.falls, 0);
    EXPECT_TRUE(checker.live.empty());
  }
};

TEST_P(Order, no_address_is_ever_live_twice_when_threads_race_for_the_same_blocks) {
  expect_order(collect_while_threads_churn<NoDelay>(4, 40'000, fences()));
}

TEST_P(Order, holds_when_threads_are_delayed_anywhere_in_an_append) {
  expect_order(collect_while_threads_churn<RandomDelay>(6, 4'000, fences()));
}

TEST(OrderChecked, finds_records_that_no_claim_announces) {
  const Checker checker = collect_while_threads_churn<NoClaim>(6, 4'000, true);
  EXPECT_GT(checker.twice_live + checker.unknown_frees + checker.falls, 0);
}

INSTANTIATE_TEST_SUITE_P(Barriers, Order, testing::Bool(), [](const testing::TestParamInfo<bool>& with_fences) {
  return with_fences.param ? "OfTheProgram" : "OfTheKernel";
});

/// A ring that this thread writes step by step, as if it were preempted in between.
class Steps : public testing::Test {
 protected:
  static constexpr std::uint64_t ring_words = page_bytes / sizeof(std::uint64_t);
  std::uint64_t drain() {
    const std::uint64_t now = stamp_after(StampClock::cycles);
    rings.drain(now, false);
    return now;
  }
  SharedRegion shared{Layout(4, 1, ring_words, 4 * ring_words)};
  Rings rings{shared.region(), 0, stamp_after(StampClock::cycles)};
};

TEST_F(Steps, an_announced_record_holds_the_watermark_back) {
  Producer producer = register_thread(shared.region(), 1, true);
  const std::uint64_t quiet = drain();
  EXPECT_EQ(rings.watermark(), quiet);
  producer.slot->claim.store(producer.head + 2);  // claimed, and no stamp yet
  drain();
  drain();
  EXPECT_EQ(rings.watermark(), quiet);
  producer.append<When::before>(pack(RecordKind::free, 16));
  const std::uint64_t after = drain();
  EXPECT_EQ(rings.watermark(), after);
}

TEST_F(Steps, a_new_thread_starts_at_the_old_watermark) {
  const std::uint64_t quiet = drain();
  Producer producer = register_thread(shared.region(), 1, true);
  producer.slot->claim.store(producer.head + 2);
  drain();
  EXPECT_EQ(rings.watermark(), quiet);
}

TEST_F(Steps, a_slot_serves_one_thread_after_another_and_keeps_them_apart) {
  Producer first = register_thread(shared.region(), 101, true);
  first.append<When::before>(pack(RecordKind::free, 16));
  drain();
  EXPECT_EQ(rings.release_slots([](std::uint32_t tid) { return tid == 101; }, [](std::uint32_t) {}), 1u);
  Producer second = register_thread(shared.region(), 102, true);
  EXPECT_EQ(first.slot, second.slot);
  second.append<When::before>(pack(RecordKind::free, 32));
  drain();
  const auto threads = rings.take_new_threads();
  ASSERT_EQ(threads.size(), 2u);
  EXPECT_EQ(threads[0].tid, 101u);
  EXPECT_EQ(threads[1].tid, 102u);
  EXPECT_NE(threads[0].thread, threads[1].thread);
}

TEST_F(Steps, a_thread_has_ended_when_its_last_record_was_merged) {
  Producer producer = register_thread(shared.region(), 101, true);
  producer.append<When::before>(pack(RecordKind::free, 16));
  drain();
  rings.release_slots([](std::uint32_t) { return true; }, [](std::uint32_t) {});
  const std::uint64_t now = drain();
  EXPECT_TRUE(rings.take_ended_threads().empty());
  Checker checker;
  merge(rings.lanes(), now, ~std::size_t{0}, checker);
  drain();
  EXPECT_EQ(rings.take_ended_threads(), std::vector<std::uint32_t>{0});
  EXPECT_TRUE(rings.take_ended_threads().empty());
}

TEST_F(Steps, a_ring_is_discarded_before_another_thread_can_have_it) {
  register_thread(shared.region(), 101, true);
  drain();
  std::uint32_t owner_then = 0;
  rings.release_slots([](std::uint32_t) { return true; },
                      [&](std::uint32_t index) { owner_then = shared.region().slot(index).owner.load(); });
  EXPECT_EQ(owner_then, 101u);
}

TEST_F(Steps, a_slot_is_not_freed_while_its_thread_runs) {
  register_thread(shared.region(), 101, true);
  drain();
  EXPECT_EQ(rings.release_slots([](std::uint32_t) { return false; }, [](std::uint32_t) {}), 0u);
}

TEST_F(Steps, a_full_ring_has_no_room_until_it_is_drained) {
  Producer producer = register_thread(shared.region(), 1, true);
  while (producer.has_room(2)) producer.append<When::before>(pack(RecordKind::free, 16));
  EXPECT_EQ(producer.head, ring_words);
  drain();
  EXPECT_TRUE(producer.has_room(ring_words));
}

TEST_F(Steps, a_thread_that_gets_a_large_ring_loses_none_of_what_lies_in_its_small_one) {
  Producer producer = register_thread(shared.region(), 1, true);
  std::uint64_t address = 0;
  const auto fill = [&] {
    while (producer.has_room(2)) producer.append<When::before>(pack(RecordKind::free, ++address));
  };
  fill();
  producer.grow(shared.region().large_ring(1), 4 * ring_words, 1);
  fill();
  EXPECT_EQ(producer.head, 5 * ring_words);
  drain();
  fill();  // round the large ring
  const std::uint64_t now = drain();
  Recorder recorder;
  merge(rings.lanes(), now, ~std::size_t{0}, recorder);
  ASSERT_EQ(recorder.addresses.size(), address);
  for (std::uint64_t i = 0; i < address; ++i) EXPECT_EQ(recorder.addresses[i], i + 1);
}

TEST_F(Steps, a_large_ring_returns_with_its_threads_slot) {
  Producer producer = register_thread(shared.region(), 1, true);
  producer.grow(shared.region().large_ring(1), 4 * ring_words, 1);
  producer.append<When::before>(pack(RecordKind::free, 16));
  drain();
  rings.release_slots([](std::uint32_t) { return true; }, [](std::uint32_t) {});
  EXPECT_EQ(shared.region().control().large_free.load(), 1u);
  Producer next = register_thread(shared.region(), 2, true);
  next.append<When::before>(pack(RecordKind::free, 32));
  const std::uint64_t now = drain();
  EXPECT_EQ(rings.watermark(), now);
  EXPECT_EQ(rings.queued_words(), 4u);
}

TEST_F(Steps, what_a_dead_process_claimed_holds_nothing_back) {
  Producer producer = register_thread(shared.region(), 1, true);
  producer.append<When::before>(pack(RecordKind::free, 16));
  producer.slot->claim.store(producer.head + 2);
  rings.drain(stamp_after(StampClock::cycles), true);
  EXPECT_EQ(rings.watermark(), ~std::uint64_t{0});
  EXPECT_EQ(rings.queued_words(), 2u);
}

}  // namespace
