using System;
using System.Collections.Generic;
using System.Threading;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    [TestFixture]
    public unsafe class WrappedAllocatorTests
    {
        private interface IEntity
        {
            ulong Id { get; set; }

            float ConsolidatedScore { get; set; }
        }

        [Test]
        public void the_articles_example_works_with_the_name_changed()
        {
            using WrappedAllocator<EntityWrapper> allocator = new WrappedAllocator<EntityWrapper>(
                sizeof(UnmanagedAllocatorTests.Entity), pointer => new EntityWrapper(pointer));
            List<EntityWrapper> entities = new List<EntityWrapper>();
            for (int i = 0; i < 100000; i++)
            {
                EntityWrapper entity = allocator.Allocate();
                Assert.AreEqual(0UL, entity.Id);
                entity.Id = (ulong)i;
                entity.ConsolidatedScore = i;
                entities.Add(entity);
            }

            for (int i = 0; i < entities.Count; i++)
            {
                IEntity entity = entities[i];
                Assert.AreEqual((ulong)i, entity.Id);
                Assert.AreEqual((float)i, entity.ConsolidatedScore);
            }

            Assert.AreEqual(4, allocator.Statistics.Blocks);
        }

        [Test]
        public void nothing_is_handed_out_after_dispose()
        {
            WrappedAllocator<IntPtr> allocator = new WrappedAllocator<IntPtr>(8, pointer => pointer);
            allocator.Allocate();
            allocator.Dispose();
            allocator.Dispose();
            Assert.Throws<ObjectDisposedException>(() => allocator.Allocate());
        }

        [Test]
        public void a_block_that_32_bits_cannot_count_is_not_cut_short()
        {
            // 65,536 x 65,537 bytes is 65,536 in 32 bits. The second item would lie outside such a block.
            using WrappedAllocator<IntPtr> many = new WrappedAllocator<IntPtr>(65536, pointer => pointer, 65537);
            many.Allocate();
            Assert.AreEqual(65536L * 65537L, many.Statistics.BytesReserved);
            using WrappedAllocator<IntPtr> most =
                new WrappedAllocator<IntPtr>(int.MaxValue, pointer => pointer, int.MaxValue);
            Assert.Throws<OutOfMemoryException>(() => most.Allocate());
        }

        [Test]
        public void an_item_whose_wrapper_could_not_be_made_does_not_count()
        {
            bool fails = true;
            using WrappedAllocator<IntPtr> allocator = new WrappedAllocator<IntPtr>(
                8, pointer => fails ? throw new InvalidOperationException() : pointer);
            Assert.Throws<InvalidOperationException>(() => allocator.Allocate());
            fails = false;
            allocator.Allocate();
            Assert.AreEqual(1, allocator.Statistics.LiveItems);
        }

        [Test]
        public void bad_arguments_are_named()
        {
            Assert.Throws<ArgumentOutOfRangeException>(() => new WrappedAllocator<int>(0, _ => 0));
            Assert.Throws<ArgumentOutOfRangeException>(() => new WrappedAllocator<int>(4, _ => 0, 0));
            Assert.Throws<ArgumentNullException>(() => new WrappedAllocator<int>(4, null!));
        }

        [Test]
        public void one_that_nobody_disposed_of_is_reported()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.On);
            Thread thread = new Thread(() => new WrappedAllocator<Guid>(16, _ => default).Allocate());
            thread.Start();
            thread.Join();
            for (int i = 0; i < 20 && leaks.CountOf("WrappedAllocator<Guid>") == 0; i++)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                Thread.Sleep(5);
            }

            Assert.AreEqual(1, leaks.CountOf("WrappedAllocator<Guid> with 1 items"), leaks.All);
        }

        private readonly struct EntityWrapper : IEntity
        {
            private readonly UnmanagedAllocatorTests.Entity* entity;

            public EntityWrapper(IntPtr pointer)
            {
                entity = (UnmanagedAllocatorTests.Entity*)pointer;
            }

            public ulong Id
            {
                get => entity->Id;
                set => entity->Id = value;
            }

            public float ConsolidatedScore
            {
                get => entity->ConsolidatedScore;
                set => entity->ConsolidatedScore = value;
            }
        }
    }
}
