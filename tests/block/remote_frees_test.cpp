// The shipped source of the remote-free protocol in every interleaving, and planted bugs that the search must find.
#include "block/remote_frees.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

#include "interleave/explorer.hpp"

namespace blockyard::block {
namespace {

using namespace interleave;
constexpr auto relaxed = std::memory_order_relaxed;

/// One slab with blocks 1, 2, ..., and two pools that it may belong to.
template <class Atomics = ModelAtomics>
struct World {
  static constexpr std::uint32_t slab = 1;
  static inline const Plain<std::uint32_t> unwritten{99};
  using Link = typename Atomics::template atomic<std::uint32_t>;

  typename Atomics::template atomic<std::uint64_t> word;
  std::array<Plain<std::uint32_t>, 5> links{unwritten, unwritten, unwritten, unwritten, unwritten};
  std::array<Link, 2> inboxes;
  Link inbox_next;
  Link pool;  ///< 0 or 1
  std::array<int, 5> found{};
  int entries = 0;  ///< of the slab in inboxes, or on the way there

  void free_remotely(std::uint32_t block, std::uint32_t wake) {
    if (remote_push(word, block, wake, [&](std::uint32_t next) { links[block].write(next); })) {
      if (++entries > 1) {
        throw Violation("the slab is in two inboxes");
      }
      inbox_push(inboxes[pool.load(relaxed)], inbox_next, slab);
    }
  }
  void collect(const RemoteList& list) {
    std::uint32_t count = 0;
    for (std::uint32_t block = list.head; block != 0; block = links[block].read()) {
      if (block >= found.size() || ++count > list.count) {
        throw Violation("the list is longer than its count");
      }
      if (++found[block] > 1) {
        throw Violation("a block was found twice");
      }
    }
    if (count != list.count) {
      throw Violation("the list is shorter than its count");
    }
  }
  void drain(std::uint32_t which) {
    if (inbox_take(inboxes[which]) == slab) {
      --entries;
      collect(remote_acknowledge(word));
    }
  }
  /// After all threads, the owner drains its inbox once more. Fewer than `wake` blocks may wait in an armed slab.
  void check(std::uint32_t blocks, std::uint32_t wake) {
    drain(pool.load(relaxed));
    const RemoteList rest = RemoteList::unpack(word.load(relaxed));
    if (rest.notice == Notice::announced || (rest.notice == Notice::armed && rest.count >= wake)) {
      throw Violation("blocks wait in a slab that nobody announced");
    }
    collect(remote_take(word));
    for (std::uint32_t block = 1; block <= blocks; ++block) {
      if (found[block] != 1) {
        throw Violation("a block was lost");
      }
    }
  }
};

/// Two threads free; the owner arms, drains its inbox, takes the list and disarms meanwhile.
Explorer::Program frees(std::uint32_t wake) {
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
          [world, wake] { world->check(3, wake); }};
}

/// The owner has ended with the slab armed in pool 0; another thread adopts it into pool 1 while two free.
template <bool Careless>
Explorer::Program adoption(std::uint32_t wake) {
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
          [world, wake] { world->check(2, wake); }};
}

/// One thread frees a block while the owner takes the list.
template <class Atomics>
Explorer::Program one_free() {
  auto world = std::make_shared<World<Atomics>>();
  return {{[world] { world->collect(remote_take(world->word)); }, [world] { world->free_remotely(1, 2); }},
          [world] { world->check(1, 2); }};
}

// The states are the same in every build, and the search takes far longer under a sanitizer.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "skipped: explores the same states as the release build, far slower"
#else
#define SKIP_UNDER_SANITIZERS() static_assert(true)
#endif

TEST(RemoteFrees, no_block_is_lost_or_found_twice_in_any_interleaving) {
  SKIP_UNDER_SANITIZERS();
  for (const std::uint32_t wake : {1u, 2u}) {
    const auto result = Explorer(3).explore([wake] { return frees(wake); });
    EXPECT_EQ(result.violation, "") << "wake " << wake;
    EXPECT_TRUE(result.complete);
    EXPECT_GT(result.schedules, 1000u);
  }
}

TEST(RemoteFrees, an_adopted_slab_is_announced_where_it_belongs_in_any_interleaving) {
  SKIP_UNDER_SANITIZERS();
  for (const std::uint32_t wake : {1u, 2u}) {
    const auto result = Explorer(3).explore([wake] { return adoption<false>(wake); });
    EXPECT_EQ(result.violation, "") << "wake " << wake;
    EXPECT_TRUE(result.complete);
    EXPECT_GT(result.schedules, 1000u);
  }
}

TEST(RemoteFreesWithPlantedBug, relaxed_orders_are_found) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_EQ(Explorer(2).explore(one_free<ModelAtomics>).violation, "");
  EXPECT_NE(Explorer(2).explore(one_free<AtomicsWithoutRelease>).violation, "");
}

TEST(RemoteFreesWithPlantedBug, adopting_an_announced_slab_is_found) {
  SKIP_UNDER_SANITIZERS();
  EXPECT_NE(Explorer(2).explore([] { return adoption<true>(1); }).violation, "");
}

TEST(RemoteFreesWithPlantedBug, taking_the_list_by_load_and_store_is_found) {
  SKIP_UNDER_SANITIZERS();
  const auto program = [] {
    auto world = std::make_shared<World<>>();
    return Explorer::Program{{[world] {
                                const RemoteList list = RemoteList::unpack(world->word.load(std::memory_order_acquire));
                                world->word.store(0, std::memory_order_release);
                                world->collect(list);
                              },
                              [world] { world->free_remotely(1, 2); }, [world] { world->free_remotely(2, 2); }},
                             [world] { world->check(2, 2); }};
  };
  EXPECT_NE(Explorer(2).explore(program).violation, "");
}

TEST(RemoteFreesWithPlantedBug, arming_a_slab_whose_list_is_long_already_is_found) {
  SKIP_UNDER_SANITIZERS();
  const auto program = [] {
    auto world = std::make_shared<World<>>();
    return Explorer::Program{
        {[world] {
           // Arms without looking at the list.
           std::uint64_t seen = world->word.load(relaxed);
           RemoteList list;
           do {
             list = RemoteList::unpack(seen);
             list.notice = Notice::armed;
           } while (!world->word.compare_exchange_weak(seen, list.pack(), std::memory_order_release, relaxed));
         },
         [world] { world->free_remotely(1, 1); }},
        [world] { world->check(1, 1); }};
  };
  EXPECT_NE(Explorer(2).explore(program).violation, "");
}

}  // namespace
}  // namespace blockyard::block
