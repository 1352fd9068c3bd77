using System;
using System.Collections.Generic;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>A large allocator gets its memory from slabs on Linux. No user should notice.</summary>
    [TestFixture]
    public unsafe class SlabTests
    {
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

        private struct Item
        {
            internal long First;
            internal long Second;
            internal long Third;
        }
    }
}
