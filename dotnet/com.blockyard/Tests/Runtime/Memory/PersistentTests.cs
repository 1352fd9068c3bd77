using System;
using System.Collections.Generic;
using Blockyard.Memory;
using NUnit.Framework;
using static Blockyard.Tests.FreshThread;

namespace Blockyard.Tests
{
    /// <summary>The runtime's heap behind persistent blocks: its cache of small blocks and its counts.</summary>
    [TestFixture]
    public unsafe class PersistentTests
    {
        [Test]
        public void a_small_block_that_was_freed_is_the_next_of_its_size() => OnFreshThread(() =>
        {
            UnmanagedMemory.Free(UnmanagedMemory.Malloc(1, 1, Lifetime.Temp), Lifetime.Temp);
            void* first = UnmanagedMemory.Malloc(64, 16, Lifetime.Persistent);
            void* second = UnmanagedMemory.Malloc(64, 16, Lifetime.Persistent);
            UnmanagedMemory.Free(first, Lifetime.Persistent);
            UnmanagedMemory.Free(second, Lifetime.Persistent);
            Assert.IsTrue(UnmanagedMemory.Malloc(50, 1, Lifetime.Persistent) == second, "64 and 50 need equal room");
            Assert.IsTrue(UnmanagedMemory.Malloc(64, 16, Lifetime.Persistent) == first);
            UnmanagedMemory.Free(first, Lifetime.Persistent);
            UnmanagedMemory.Free(second, Lifetime.Persistent);
        });

        [Test]
        public void a_thread_s_cache_is_bounded() => OnFreshThread(() =>
        {
            const int Blocks = PersistentMemory.LargestCache / 16;
            IntPtr[] blocks = new IntPtr[Blocks];
            for (int i = 0; i < Blocks; i++)
            {
                blocks[i] = (IntPtr)UnmanagedMemory.Malloc(16 * (1 + (i % 15)), 16, Lifetime.Persistent);
            }

            foreach (IntPtr block in blocks)
            {
                UnmanagedMemory.Free((void*)block, Lifetime.Persistent);
            }

            long held = ThreadState.Current->CachedBytes;
            Assert.That(held, Is.InRange(PersistentMemory.LargestCache, PersistentMemory.LargestCache + 256));
            UnmanagedMemory.Malloc(240, 16, Lifetime.Persistent);
            Assert.AreEqual(held - 256, ThreadState.Current->CachedBytes);
        });

        [Test]
        public void a_cached_block_that_is_freed_again_is_caught_also_without_checks() => OnFreshThread(() =>
        {
            void* block = UnmanagedMemory.Malloc(64, 16, Lifetime.Persistent);
            UnmanagedMemory.Free(block, Lifetime.Persistent);
            Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(block, Lifetime.Persistent));
        });

        [TestCase(1)]
        [TestCase(2)]
        public void random_blocks_keep_their_contents_and_are_all_counted(int seed) => OnFreshThread(() =>
        {
            long before = LiveBytes();
            Random random = new Random(seed);
            List<(IntPtr Block, int Size, byte Mark)> live = new List<(IntPtr, int, byte)>();
            for (int step = 0; step < 20000; step++)
            {
                if (live.Count == 0 || random.Next(live.Count < 100 ? 3 : 2) > 0)
                {
                    int size = random.Next(random.Next(4) == 0 ? 5000 : 300);
                    int alignment = 1 << random.Next(9);
                    byte* block = (byte*)UnmanagedMemory.Malloc(size, alignment, Lifetime.Persistent);
                    Assert.AreEqual(0UL, (ulong)block % (ulong)alignment);
                    new Span<byte>(block, size).Fill((byte)step);
                    live.Add(((IntPtr)block, size, (byte)step));
                }
                else
                {
                    int which = random.Next(live.Count);
                    (IntPtr block, int size, byte mark) = live[which];
                    live.RemoveAt(which);
                    bool isKept = true;
                    foreach (byte value in new Span<byte>((void*)block, size))
                    {
                        isKept &= value == mark;
                    }

                    Assert.IsTrue(isKept);

                    UnmanagedMemory.Free((void*)block, Lifetime.Persistent);
                }
            }

            long bytes = 0;
            foreach ((_, int size, _) in live)
            {
                bytes += Math.Max(1, size);
            }

            Assert.AreEqual(before + bytes, LiveBytes());
            foreach ((IntPtr block, _, _) in live)
            {
                UnmanagedMemory.Free((void*)block, Lifetime.Persistent);
            }

            Assert.AreEqual(before, LiveBytes());
        });

        [Test]
        public void blocks_freed_by_other_threads_are_counted_too() => OnFreshThread(() =>
        {
            long before = LiveBytes();
            IntPtr[] blocks = new IntPtr[100];
            for (int i = 0; i < blocks.Length; i++)
            {
                blocks[i] = (IntPtr)UnmanagedMemory.Malloc(100, 16, Lifetime.Persistent);
            }

            OnFreshThread(() =>
            {
                foreach (IntPtr block in blocks)
                {
                    UnmanagedMemory.Free((void*)block, Lifetime.Persistent);
                }
            });
            Assert.AreEqual(before, LiveBytes());
        });

        [Test]
        public void a_list_keeps_its_items_when_large_memory_moves() => OnFreshThread(() =>
        {
            long before = LiveBytes();
            UnmanagedList<long> list = new UnmanagedList<long>(0, Lifetime.Persistent);
            UnmanagedList<byte> between = new UnmanagedList<byte>(0, Lifetime.Persistent);
            for (int i = 0; i < 3_000_000; i++)
            {
                list.Add(i);
                if (i % 7 == 0)
                {
                    between.Add((byte)i);
                }
            }

            for (int i = 0; i < list.Count; i++)
            {
                if (list[i] != i || between[i / 7] != (byte)(i - (i % 7)))
                {
                    Assert.Fail("item " + i);
                }
            }

            list.AddRange(list.AsSpan().Slice(1, list.Capacity - list.Count + 1));
            Assert.AreEqual(1L, list[3_000_000]);
            Assert.AreEqual(list.Count - 3_000_000L, list[list.Count - 1]);
            list.Dispose();
            between.Dispose();
            Assert.AreEqual(before, LiveBytes());
        });

        [Test]
        public void the_last_temp_block_grows_in_place() => OnFreshThread(() =>
        {
            UnmanagedList<int> list = new UnmanagedList<int>(8, Lifetime.Temp);
            for (int i = 0; i < 9; i++)
            {
                list.Add(i);
            }

            ref int first = ref list[0];
            while (list.Count < 10000)
            {
                list.Add(list.Count);
            }

            first = 77;
            Assert.AreEqual(77, list[0], "the items have not moved");
            Assert.AreEqual(9999, list[9999]);
            int* after = (int*)UnmanagedMemory.Malloc(4, 4, Lifetime.Temp);
            *after = 5;
            list.EnsureCapacity(30000);
            list.AddRange(new int[10000]);
            Assert.AreEqual(5, *after, "another block behind it is left alone");
            Assert.AreEqual(77, list[0]);
            FrameMemory.EndThreadFrame();
        });

        private static long LiveBytes() => ThreadMemory.TotalsOfAll().PersistentBytes;
    }
}
