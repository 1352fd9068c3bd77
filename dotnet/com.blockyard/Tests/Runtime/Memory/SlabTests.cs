using System;
using System.Collections.Generic;
using System.IO;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>A large allocator gets its memory from slabs on Linux. No user should notice.</summary>
    [TestFixture]
    public unsafe class SlabTests
    {
        private const long MiB = 1024 * 1024;

        [TestCase(0, 5000)]
        [TestCase(64, 5000)]
        [TestCase(4096, 5000)]
        [TestCase(0, 30001)]
        public void millions_of_items_are_zero_aligned_apart_and_keep_what_was_written(int alignment, int itemsPerBlock)
        {
            bool copies = PageCopies.IsAvailable;
            const int Bytes = 24 * 1024 * 1024;
            using UnmanagedAllocator<Item> allocator =
                new UnmanagedAllocator<Item>(itemsPerBlock, alignment: alignment);
            int stride = Math.Max(sizeof(Item), alignment);
            List<Ptr<Item>> items = new List<Ptr<Item>>();
            for (int i = 0; i < Bytes / stride; i++)
            {
                Ptr<Item> item = allocator.AllocatePtr();
                bool isFresh = item.Value.First == 0 && item.Value.Second == 0 && item.Value.Third == 0;
                if (!isFresh || (ulong)item.Address % (ulong)allocator.Alignment != 0)
                {
                    Assert.Fail("item " + i + " at " + item);
                }

                item.Value = new Item { First = i, Second = ~i, Third = -i };
                items.Add(item);
            }

            for (int i = 0; i < items.Count; i++)
            {
                Item item = items[i].Value;
                if (item.First != i || item.Second != ~i || item.Third != -i)
                {
                    Assert.Fail("item " + i + " was written over");
                }
            }

            Assert.AreEqual((items.Count + itemsPerBlock - 1) / itemsPerBlock, allocator.Statistics.Blocks);
            Assert.AreEqual((long)items.Count * stride, allocator.Statistics.BytesUsed);

            // A page that two blocks share is copied only once, because a second copy fails.
            Assert.AreEqual(copies, PageCopies.IsAvailable);
        }

        [TestCase(true)]
        [TestCase(false)]
        public void items_that_are_not_written_use_no_memory(bool zeroed)
        {
            using UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>(zeroed: zeroed);
            using WrappedAllocator<IntPtr> wrapped =
                new WrappedAllocator<IntPtr>(sizeof(Item), pointer => pointer, zeroed: zeroed);
            long before = Resident();
            for (int i = 0; i < 64 * MiB / sizeof(Item); i++)
            {
                allocator.AllocatePtr();
                wrapped.Allocate();
            }

            Assert.Less(Resident() - before, 16 * MiB);
        }

        [Test]
        public void without_zeroing_no_page_comes_before_its_items_are_written()
        {
            using UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>(zeroed: false);
            for (int i = 0; i < 32 * MiB / sizeof(Item); i++)
            {
                allocator.Allocate().First = i;
            }

            long before = Resident();
            for (int i = 0; i < 64 * MiB / sizeof(Item); i++)
            {
                allocator.AllocatePtr();
            }

            Assert.Less(Resident() - before, 8 * MiB);
        }

        [Test]
        public void pages_are_populated_in_advance_while_items_are_written_and_no_longer()
        {
            using UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>();
            for (int i = 0; i < 32 * MiB / sizeof(Item); i++)
            {
                allocator.Allocate().First = i;
            }

            long before = Resident();
            for (int i = 0; i < 64 * MiB / sizeof(Item); i++)
            {
                allocator.AllocatePtr();
            }

            Assert.Less(Resident() - before, 8 * MiB);
        }

        [Test]
        public void what_was_written_is_zero_again_after_a_reset_a_scope_and_a_taking_back()
        {
            using UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>(itemsPerBlock: 50000);
            Random random = new Random(8);
            for (int round = 0; round < 12; round++)
            {
                Use(allocator, random.Next(300000));
                using (allocator.BeginScope())
                {
                    Use(allocator, random.Next(300000));
                }

                Ptr<Item> last = allocator.AllocatePtr();
                last.Value.First = 1;
                Assert.IsTrue(allocator.TryTakeBack(last));
                Use(allocator, random.Next(100000));
                foreach (Item item in allocator.AllocateSpan(random.Next(200000)))
                {
                    Assert.IsTrue((item.First | item.Second | item.Third) == 0);
                }

                allocator.Reset();
            }
        }

        [Test]
        public void spans_of_many_sizes_among_the_blocks_stay_apart()
        {
            Random random = new Random(20);
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>(itemsPerBlock: 100000);
            List<(IntPtr Start, int Count, int Value)> spans = new List<(IntPtr Start, int Count, int Value)>();
            for (int i = 1; i <= 120; i++)
            {
                int count = i % 10 == 0 ? random.Next(1000000, 3000000) : random.Next(1, 90000);
                Span<int> span = allocator.AllocateSpan(count);
                Assert.AreEqual(0, span[0] | span[count / 2] | span[count - 1]);
                span.Fill(i);
                fixed (int* start = span)
                {
                    spans.Add(((IntPtr)start, count, i));
                }
            }

            foreach ((IntPtr start, int count, int value) in spans)
            {
                foreach (int found in new ReadOnlySpan<int>((void*)start, count))
                {
                    if (found != value)
                    {
                        Assert.Fail("span " + value + " holds " + found);
                    }
                }
            }
        }

        [Test]
        public void a_reset_uses_the_same_blocks_again_and_dispose_gives_all_back()
        {
            UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>();
            AllocatorStatistics full = default;
            for (int round = 0; round < 3; round++)
            {
                for (int i = 0; i < 400000; i++)
                {
                    ref Item item = ref allocator.Allocate();
                    if (item.First != 0)
                    {
                        Assert.Fail("item " + i + " of round " + round + " is not cleared");
                    }

                    item.First = 1;
                }

                full = round == 0 ? allocator.Statistics : full;
                Assert.AreEqual(full.Blocks, allocator.Statistics.Blocks);
                Assert.AreEqual(full.BytesReserved, allocator.Statistics.BytesReserved);
                allocator.Reset();
            }

            allocator.Dispose();
            Assert.AreEqual(0, allocator.Statistics.BytesReserved);
            Assert.Throws<ObjectDisposedException>(() => allocator.Allocate());
        }

        [Test]
        public void a_chunked_list_adds_cleared_items_in_place_also_in_chunks_used_before()
        {
            using UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>();
            UnmanagedChunkedList<Item> list = new UnmanagedChunkedList<Item>(allocator.Source, 64);
            for (int round = 0; round < 3; round++)
            {
                for (int i = 0; i < 1000; i++)
                {
                    ref Item item = ref list.Add();
                    Assert.AreEqual(0, item.First | item.Second | item.Third);
                    item = new Item { First = i, Second = 1, Third = 1 };
                }

                Assert.AreEqual(1000, list.Count);
                for (int i = 0; i < 1000; i++)
                {
                    Assert.AreEqual(i, list[i].First);
                }

                list.Clear();
            }

            list.Dispose();
        }

        private static void Use(UnmanagedAllocator<Item> allocator, int count)
        {
            for (int i = 0; i < count; i++)
            {
                ref Item item = ref allocator.Allocate();
                if ((item.First | item.Second | item.Third) != 0)
                {
                    Assert.Fail("item " + i + " is not zero");
                }

                item = new Item { First = 1, Second = 2, Third = 3 };
            }
        }

        private static long Resident()
        {
            if (!File.Exists("/proc/self/statm"))
            {
                Assert.Ignore("this system does not tell how much memory a process has");
            }

            return long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]) * Environment.SystemPageSize;
        }

        private struct Item
        {
            internal long First;
            internal long Second;
            internal long Third;
        }
    }
}
