// The remote-free protocol (library/src/block/remote_frees.hpp, the shipped source) in every interleaving; and bugs planted in
// it, each of which the search must find.
#include "block/remote_frees.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "scheduler.hpp"

namespace blockyard::block {
namespace {

using test::Atomic;
using test::Scheduler;
constexpr auto relaxed = std::memory_order_relaxed;

/// One slab, its blocks 1, 2, ... and two pools that it may belong to.
template <bool Weak = false>
struct World {
  static constexpr std::uint32_t slab = 1;
  static constexpr std::uint32_t unwritten = 99;

  Atomic<std::uint64_t, Weak> word;
  std::array<Atomic<std::uint32_t>, 5> links{Atomic(unwritten), Atomic(unwritten), Atomic(unwritten), Atomic(unwritten),
                                             Atomic(unwritten)};
  std::array<Atomic<std::uint32_t, Weak>, 2> inboxes;
  Atomic<std::uint32_t> inbox_next;
  Atomic<std::uint32_t> pool;  ///< 0 or 1
  std::array<int, 5> found{};
  int entries = 0;  ///< of the slab in inboxes, or on the way there
  bool broken = false;

  void announce() {
    broken = broken || ++entries > 1;
    inbox_push(inboxes[pool.load(relaxed)], inbox_next, slab);
  }
  void free_remotely(std::uint32_t block, std::uint32_t wake) {
    if (remote_push(word, block, wake, [&](std::uint32_t next) { links[block].store(next, relaxed); })) {
      announce();
    }
  }
  void collect(const RemoteList& list) {
    std::uint32_t count = 0;
    for (std::uint32_t block = list.head; block != 0; block = links[block].load(relaxed)) {
      if (block >= found.size() || ++count > list.count) {
        broken = true;
        return;
      }
      ++found[block];
    }
    broken = broken || count != list.count;
  }
  void drain(std::uint32_t which) {
    if (inbox_take(inboxes[which]) == slab) {
      --entries;
      collect(remote_acknowledge(word));
    }
  }
  /// After all threads: the owner has looked into its inbox once more. Each block was found once, but for fewer than
  /// `wake`.
  bool all_found(std::uint32_t blocks, std::uint32_t wake) {
    drain(pool.load(relaxed));
    const RemoteList rest = RemoteList::unpack(word.load(relaxed));
    if (rest.notice == Notice::announced || (rest.notice == Notice::armed && rest.count >= wake)) {
      return false;
    }
    collect(remote_take(word));
    for (std::uint32_t block = 1; block <= blocks; ++block) {
      broken = broken || found[block] != 1;
    }
    return !broken;
  }
};

/// Two threads free; the owner arms, looks into its inbox, takes the list and disarms meanwhile.
Scheduler::Scenario frees(std::uint32_t wake) {
  auto world = std::make_shared<World<>>();
  return {{[world, wake] {
             if (!remote_arm(world->word, wake)) {
               world->collect(remote_take(world->word));
             }
             world->drain(0);
             remote_disarm(world->word);
             world->collect(remote_take(world->word));
             static_cast<void>(remote_arm(world->word, wake));
           },
           [world, wake] {
             world->free_remotely(1, wake);
             world->free_remotely(2, wake);
           },
           [world, wake] { world->free_remotely(3, wake); }},
          [world, wake] { return world->all_found(3, wake); }};
}

/// The owner has ended with the slab armed in pool 0; another thread adopts it into pool 1 while two free.
template <bool Careless>
Scheduler::Scenario adoption(std::uint32_t wake) {
  auto world = std::make_shared<World<>>();
  static_cast<void>(remote_arm(world->word, wake));
  return {{[world, wake] {
             world->drain(0);
             remote_disarm(world->word);
             if (!Careless && remote_is_announced(world->word)) {
               static_cast<void>(remote_arm(world->word, wake));  // stays where its entry is
               return;
             }
             world->pool.store(1, relaxed);
             if (!remote_arm(world->word, wake)) {
               world->collect(remote_take(world->word));
             }
           },
           [world, wake] { world->free_remotely(1, wake); }, [world, wake] { world->free_remotely(2, wake); }},
          [world, wake] { return world->all_found(2, wake); }};
}

// The scheduler switches stacks by itself, in one real thread: nothing for the sanitizers to see, and they lose track.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_UNDER_SANITIZERS() \
  GTEST_SKIP() << "skipped: the test scheduler's fibers confuse sanitizers; run it in a release build"
#else
#define SKIP_UNDER_SANITIZERS() static_assert(true)
#endif

TEST(RemoteFrees, no_block_is_lost_or_found_twice_in_any_interleaving) {
  SKIP_UNDER_SANITIZERS();
  for (const std::uint32_t wake : {1u, 2u}) {
    const auto result = Scheduler::explore([wake] { return frees(wake); }, 2);
    EXPECT_FALSE(result.violated) << "wake " << wake;
    EXPECT_GT(result.executions, 1000u);
  }
}

TEST(RemoteFrees, an_adopted_slab_is_announced_where_it_belongs_in_any_interleaving) {
  SKIP_UNDER_SANITIZERS();
  for (const std::uint32_t wake : {1u, 2u}) {
    const auto result = Scheduler::explore([wake] { return adoption<false>(wake); }, 2);
    EXPECT_FALSE(result.violated) << "wake " << wake;
    EXPECT_GT(result.executions, 1000u);
  }
}

TEST(RemoteFreesWithPlantedBug, relaxed_orders_are_found) {
  SKIP_UNDER_SANITIZERS();
  const auto scenario = []<bool Weak>(std::bool_constant<Weak>) {
    auto world = std::make_shared<World<Weak>>();
    return Scheduler::Scenario{
        {[world] { world->collect(remote_take(world->word)); }, [world] { world->free_remotely(1, 2); }},
        [world] { return world->all_found(1, 2); }};
  };
  EXPECT_FALSE(Scheduler::explore([&] { return scenario(std::false_type()); }, 2).violated);
  EXPECT_TRUE(Scheduler::explore([&] { return scenario(std::true_type()); }, 2).violated);
}

TEST(RemoteFreesWithPlantedBug, adopting_an_announced_slab_is_found) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_TRUE(Scheduler::explore([] { return adoption<true>(1); }, 2).violated);
}

TEST(RemoteFreesWithPlantedBug, taking_the_list_by_load_and_store_is_found) {
  SKIP_UNDER_SANITIZERS();
  const auto scenario = [] {
    auto world = std::make_shared<World<>>();
    return Scheduler::Scenario{{[world] {
                                  const RemoteList list =
                                      RemoteList::unpack(world->word.load(std::memory_order_acquire));
                                  world->word.store(0, std::memory_order_release);
                                  world->collect(list);
                                },
                                [world] { world->free_remotely(1, 2); }, [world] { world->free_remotely(2, 2); }},
                               [world] { return world->all_found(2, 2); }};
  };
  EXPECT_TRUE(Scheduler::explore(scenario, 2).violated);
}

TEST(RemoteFreesWithPlantedBug, looking_away_before_the_list_is_known_to_be_short_is_found) {
  SKIP_UNDER_SANITIZERS();
  const auto scenario = [] {
    auto world = std::make_shared<World<>>();
    return Scheduler::Scenario{
        {[world] {
           // Arms without looking at what is on the list already.
           RemoteList list = RemoteList::unpack(world->word.load(relaxed));
           std::uint64_t seen = list.pack();
           do {
             list = RemoteList::unpack(seen);
             list.notice = Notice::armed;
           } while (!world->word.compare_exchange_weak(seen, list.pack(), std::memory_order_release, relaxed));
         },
         [world] { world->free_remotely(1, 1); }},
        [world] { return world->all_found(1, 1); }};
  };
  EXPECT_TRUE(Scheduler::explore(scenario, 2).violated);
}

}  // namespace
}  // namespace blockyard::block
