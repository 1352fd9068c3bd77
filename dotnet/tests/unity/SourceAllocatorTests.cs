using System;
using Blockyard.Memory;
using NUnit.Framework;
using Unity.Collections;

namespace Blockyard.Tests
{
    /// <summary>Unity's collections in Blockyard's memory, on shapes of Unity's types.</summary>
    [TestFixture]
    public unsafe class SourceAllocatorTests
    {
        [TestCase(Lifetime.Temp)]
        [TestCase(Lifetime.TempJob)]
        [TestCase(Lifetime.Persistent)]
        public void a_native_list_lives_in_a_lifetime_grows_and_ends(Lifetime lifetime)
        {
            AllocatorHelper<SourceAllocator> helper = new AllocatorHelper<SourceAllocator>(Allocator.Persistent);
            helper.Allocator.Source = lifetime;
            Fill(new NativeList<long>(4, helper.Allocator.Handle)).Dispose();
            Assert.IsTrue(helper.Allocator.IsCustomAllocator);
            Assert.IsFalse(helper.Allocator.IsAutoDispose);
            helper.Allocator.Dispose();
            helper.Dispose();
            FrameMemory.EndThreadFrame();
        }

        [Test]
        public void native_lists_in_rewindable_memory_end_with_the_rewind_and_the_next_use_the_same_memory()
        {
            using RewindableMemory memory = new RewindableMemory();
            AllocatorHelper<SourceAllocator> helper = new AllocatorHelper<SourceAllocator>(Allocator.Persistent);
            helper.Allocator.Source = memory.Source;
            Assert.IsTrue(helper.Allocator.IsAutoDispose);
            long reserved = 0;
            for (int frame = 0; frame < 10; frame++)
            {
                Fill(new NativeList<long>(4, helper.Allocator.Handle));
                reserved = frame == 0 ? memory.Statistics.BytesReserved : reserved;
                Assert.AreEqual(reserved, memory.Statistics.BytesReserved);
                memory.Rewind();
                Assert.AreEqual(0, memory.Statistics.BytesUsed);
            }

            helper.Allocator.Dispose();
            helper.Dispose();
        }

        [Test]
        public void a_block_that_there_is_no_memory_for_is_refused_and_the_old_one_stays()
        {
            SourceAllocator allocator = new SourceAllocator { Source = Lifetime.Persistent };
            AllocatorManager.Block block = default;
            block.Range.Items = 4;
            block.BytesPerItem = 8;
            Assert.AreEqual(0, allocator.Try(ref block));
            *(long*)block.Range.Pointer = 7;
            IntPtr old = block.Range.Pointer;
            block.Range.Items = int.MaxValue;
            block.BytesPerItem = int.MaxValue;
            Assert.AreEqual(-1, allocator.Try(ref block));
            Assert.AreEqual(old, block.Range.Pointer);
            Assert.AreEqual(7, *(long*)old);
            block.Range.Items = 0;
            Assert.AreEqual(0, allocator.Try(ref block));
            Assert.AreEqual(IntPtr.Zero, block.Range.Pointer);
        }

        private static NativeList<long> Fill(NativeList<long> list)
        {
            for (int i = 0; i < 1000; i++)
            {
                list.Add(i);
            }

            for (int i = 0; i < 1000; i++)
            {
                Assert.AreEqual(i, list[i]);
            }

            return list;
        }
    }
}
