using System;
using System.Collections.Generic;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    [TestFixture]
    public unsafe class RewindableMemoryTests
    {
        [Test]
        public void blocks_are_aligned_apart_and_writable()
        {
            using RewindableMemory memory = new RewindableMemory(4096);
            RandomBlocks.Check(9, (size, alignment) => memory.Malloc(size, alignment), block => { });
        }

        [Test]
        public void a_rewind_uses_the_same_memory_again_without_garbage()
        {
            using RewindableMemory memory = new RewindableMemory();
            Use(memory);
            AllocatorStatistics first = memory.Statistics;
            memory.Rewind();
            Assert.AreEqual(0, memory.Statistics.BytesUsed);
            AllocationAssert.Zero(() =>
            {
                Use(memory);
                memory.Rewind();
            });
            Use(memory);
            Assert.AreEqual(first.BytesReserved, memory.Statistics.BytesReserved);
            Assert.AreEqual(first.BytesUsed, memory.Statistics.BytesUsed);
        }

        [Test]
        public void containers_live_in_it()
        {
            using RewindableMemory memory = new RewindableMemory();
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(10, memory.Source);
            for (int i = 0; i < 1000; i++)
            {
                map.Add(i, -i);
            }

            Assert.AreEqual(-999, map[999]);
            Assert.Greater(memory.Statistics.BytesUsed, 1000 * sizeof(long));
        }

        [Test]
        public void stress_threads_allocate_at_the_same_time()
        {
            using RewindableMemory memory = new RewindableMemory(1024);
            List<FreshThread> threads = new List<FreshThread>();
            for (int t = 0; t < 4; t++)
            {
                byte mark = (byte)(t + 1);
                threads.Add(new FreshThread(() =>
                {
                    for (int round = 0; round < 200; round++)
                    {
                        Span<byte> mine = memory.MallocSpan<byte>(round);
                        mine.Fill(mark);
                        UnmanagedList<byte> list = new UnmanagedList<byte>(mine, memory.Source);
                        foreach (byte found in mine)
                        {
                            Assert.AreEqual(mark, found);
                        }

                        Assert.AreEqual(round, list.Count);
                    }
                }));
            }

            foreach (FreshThread thread in threads)
            {
                thread.JoinWithoutFailure();
            }
        }

        [Test]
        public void bad_arguments_and_use_after_dispose_are_refused()
        {
            Assert.Throws<ArgumentOutOfRangeException>(() => new RewindableMemory(0));
            RewindableMemory memory = new RewindableMemory();
            Assert.Throws<ArgumentOutOfRangeException>(() => memory.Malloc(-1, 8));
            Assert.Throws<ArgumentOutOfRangeException>(() => memory.Malloc(8, 3));
            Assert.Throws<ArgumentOutOfRangeException>(() => memory.MallocSpan<int>(-1));
            memory.Dispose();
            memory.Dispose();
            Assert.Throws<ObjectDisposedException>(() => memory.Malloc(8, 8));
            Assert.Throws<ObjectDisposedException>(() => memory.Rewind());
        }

        private static void Use(RewindableMemory memory)
        {
            for (int i = 0; i < 100; i++)
            {
                memory.MallocSpan<int>(1000);
            }
        }
    }
}
