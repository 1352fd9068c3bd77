using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    [TestFixture]
    public unsafe class UnmanagedAllocatorTests
    {
        [Test]
        public void items_keep_what_was_written_to_them()
        {
            using UnmanagedAllocator<Entity> allocator = new UnmanagedAllocator<Entity>(64);
            Ptr<Entity>[] items = new Ptr<Entity>[1000];
            for (int i = 0; i < items.Length; i++)
            {
                items[i] = allocator.AllocatePtr();
                items[i].Value = new Entity { Id = (ulong)i, Score = i * 0.5 };
            }

            for (int i = 0; i < items.Length; i++)
            {
                Assert.AreEqual((ulong)i, items[i].Value.Id);
                Assert.AreEqual(i * 0.5, items[i].Value.Score);
            }
        }

        [Test]
        public void a_reference_is_to_the_item_itself()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            ref int item = ref allocator.Allocate();
            item = 41;
            item++;
            fixed (int* address = &item)
            {
                Assert.AreEqual(42, *address);
            }
        }

        [Test]
        public void a_handle_costs_12_bytes_of_the_collected_heap_however_many_there_are()
        {
            if (!AllocationMeter.CanTell)
            {
                Assert.Ignore("this runtime cannot count allocations");
            }

            const int Handles = 200_000;
            using UnmanagedAllocator<Entity> allocator = new UnmanagedAllocator<Entity>();
            AllocationMeasurement cost = AllocationMeter.Measure(() =>
            {
                for (int i = 0; i < Handles; i++)
                {
                    allocator.AllocateHandle();
                }
            });
            Assert.That(cost.Bytes, Is.LessThan((Handles * 12L) + (4 * 98304)));
        }

        [TestCase(1, 10, 10)]
        [TestCase(32768, 32768, 1)]
        [TestCase(32768, 32769, 2)]
        [TestCase(100, 1000, 10)]
        public void the_runtime_is_asked_once_a_block(int itemsPerBlock, int items, int blocks)
        {
            using UnmanagedAllocator<Entity> allocator = new UnmanagedAllocator<Entity>(itemsPerBlock);
            for (int i = 0; i < items; i++)
            {
                allocator.Allocate();
            }

            Assert.AreEqual(blocks, allocator.Statistics.Blocks);
            Assert.AreEqual(
                (long)items * sizeof(Entity), allocator.Statistics.BytesUsed, "an item costs its own size");
        }

        [Test]
        public void items_are_zero_when_that_is_asked_for_also_in_memory_used_before()
        {
            using UnmanagedAllocator<Entity> allocator = new UnmanagedAllocator<Entity>(16, zeroed: true);
            for (int round = 0; round < 3; round++)
            {
                for (int i = 0; i < 40; i++)
                {
                    ref Entity item = ref allocator.Allocate();
                    Assert.AreEqual(0UL, item.Id);
                    item.Id = ulong.MaxValue;
                }

                Span<Entity> span = allocator.AllocateSpan(40);
                foreach (ref Entity item in span)
                {
                    Assert.AreEqual(0UL, item.Id);
                    item.Id = ulong.MaxValue;
                }

                allocator.Reset();
            }
        }

        [Test]
        public void items_are_left_as_they_are_when_that_is_asked_for()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>(16, zeroed: false);
            allocator.Allocate() = 7;
            allocator.Reset();
            Assert.AreEqual(7, allocator.Allocate());
        }

        [TestCase(1)]
        [TestCase(8)]
        [TestCase(64)]
        [TestCase(4096)]
        [TestCase(16384)]
        public void alignment_is_honoured_for_items_and_spans(int alignment)
        {
            using UnmanagedAllocator<byte> allocator = new UnmanagedAllocator<byte>(5, alignment: alignment);
            for (int i = 1; i < 20; i++)
            {
                Assert.AreEqual(0UL, (ulong)allocator.AllocatePtr().Address % (ulong)alignment);
                fixed (byte* first = allocator.AllocateSpan(i))
                {
                    Assert.AreEqual(0UL, (ulong)first % (ulong)alignment);
                }
            }
        }

        [Test]
        public void the_natural_alignment_is_that_of_the_type()
        {
            using UnmanagedAllocator<Entity> natural = new UnmanagedAllocator<Entity>();
            using UnmanagedAllocator<Packed> packed = new UnmanagedAllocator<Packed>();
            Assert.AreEqual(8, natural.Alignment);
            Assert.AreEqual(1, packed.Alignment);
            packed.AllocatePtr();
            packed.AllocatePtr();
            Assert.AreEqual(2 * 22, packed.Statistics.BytesUsed);
        }

        [Test]
        public void a_span_lies_side_by_side_and_may_be_larger_than_a_block()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>(8);
            allocator.Allocate() = 1;
            Span<int> span = allocator.AllocateSpan(1000);
            for (int i = 0; i < span.Length; i++)
            {
                span[i] = i;
            }

            allocator.Allocate() = 2;
            Assert.AreEqual(1000, span.Length);
            Assert.AreEqual(999, span[999]);
            Assert.AreEqual(0, allocator.AllocateSpan(0).Length);
        }

        [Test]
        public void a_handle_finds_its_item_until_it_is_freed()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Handle<int> first = allocator.AllocateHandle();
            allocator.Get(first) = 5;
            Handle<int> second = allocator.AllocateHandle();
            allocator.Get(second) = 6;
            Assert.AreEqual(5, allocator.Get(first));
            allocator.Free(first);
            Assert.IsFalse(allocator.TryGet(first, out _));
            Assert.Throws<InvalidOperationException>(() => allocator.Get(first));
            Assert.Throws<InvalidOperationException>(() => allocator.Free(first), "freed twice");
            Assert.AreEqual(6, allocator.Get(second));
        }

        [Test]
        public void a_stale_handle_does_not_find_the_item_that_took_its_place()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Handle<int> old = allocator.AllocateHandle();
            allocator.TryGet(old, out Ptr<int> place);
            allocator.Free(old);
            Handle<int> young = allocator.AllocateHandle();
            allocator.TryGet(young, out Ptr<int> again);
            Assert.AreEqual(place, again, "the place is used again");
            Assert.AreEqual(old.Index, young.Index);
            Assert.AreNotEqual(old, young);
            Assert.IsFalse(allocator.TryGet(old, out _));
        }

        [Test]
        public void a_reset_makes_every_handle_stale()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Handle<int> before = allocator.AllocateHandle();
            allocator.Reset();
            allocator.AllocateHandle();
            Assert.IsFalse(allocator.TryGet(before, out _));
        }

        [Test]
        public void a_handle_of_another_allocator_and_the_default_handle_are_not_found()
        {
            using UnmanagedAllocator<int> one = new UnmanagedAllocator<int>();
            using UnmanagedAllocator<int> other = new UnmanagedAllocator<int>();
            Handle<int> handle = one.AllocateHandle();
            other.AllocateHandle();
            Assert.IsFalse(other.TryGet(handle, out _));
            Assert.IsFalse(one.TryGet(default, out _));
        }

        [Test]
        public void a_scope_frees_what_was_allocated_within_it()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>(4);
            Ptr<int> kept = allocator.AllocatePtr();
            kept.Value = 1;
            Handle<int> keptHandle = allocator.AllocateHandle();
            Handle<int> inside;
            using (allocator.BeginScope())
            {
                inside = allocator.AllocateHandle();
                for (int i = 0; i < 100; i++)
                {
                    allocator.Allocate() = -1;
                }

                Assert.AreEqual(103, allocator.Statistics.LiveItems);
            }

            Assert.AreEqual(2, allocator.Statistics.LiveItems);
            Assert.AreEqual(1, kept.Value);
            Assert.IsTrue(allocator.TryGet(keptHandle, out _));
            Assert.IsFalse(allocator.TryGet(inside, out _));
            Assert.AreEqual(1, allocator.Statistics.LiveHandles);
        }

        [Test]
        public void an_outer_scope_ends_those_within_it_and_ending_twice_does_nothing()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>(4);
            AllocatorScope<int> outer = allocator.BeginScope();
            allocator.Allocate();
            AllocatorScope<int> inner = allocator.BeginScope();
            allocator.Allocate();
            outer.Dispose();
            Assert.AreEqual(0, allocator.Statistics.LiveItems);
            allocator.Allocate();
            inner.Dispose();
            outer.Dispose();
            Assert.AreEqual(1, allocator.Statistics.LiveItems);
        }

        [Test]
        public void an_older_item_freed_within_a_scope_stays_freed_after_it()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Handle<int> older = allocator.AllocateHandle();
            allocator.AllocateHandle();
            using (allocator.BeginScope())
            {
                allocator.Free(older);
                Handle<int> young = allocator.AllocateHandle();
                allocator.Free(young);
            }

            Assert.AreEqual(1, allocator.Statistics.LiveItems);
            Assert.IsFalse(allocator.TryGet(older, out _));
            Assert.AreEqual(older.Index, allocator.AllocateHandle().Index, "its place is used again");
        }

        [Test]
        public void only_the_last_item_is_taken_back()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>(2);
            Ptr<int> first = allocator.AllocatePtr();
            Ptr<int> second = allocator.AllocatePtr();
            Assert.IsFalse(allocator.TryTakeBack(first));
            Assert.IsTrue(allocator.TryTakeBack(second));
            Assert.IsFalse(allocator.TryTakeBack(second), "it was taken back already");
            Assert.AreEqual(second, allocator.AllocatePtr());
            allocator.TryGet(allocator.AllocateHandle(), out Ptr<int> handled);
            Assert.IsFalse(allocator.TryTakeBack(handled), "it has a handle");
            Assert.IsFalse(allocator.TryTakeBack(default));
        }

        [Test]
        public void statistics_tell_live_peak_total_and_bytes()
        {
            using UnmanagedAllocator<long> allocator = new UnmanagedAllocator<long>(10);
            allocator.AllocateSpan(25);
            allocator.Allocate();
            allocator.Reset();
            allocator.Allocate();
            AllocatorStatistics now = allocator.Statistics;
            Assert.AreEqual(1, now.LiveItems);
            Assert.AreEqual(26, now.PeakItems);
            Assert.AreEqual(27, now.TotalItems);
            Assert.AreEqual(1, now.Resets);
            Assert.AreEqual(8, now.BytesUsed);
            Assert.That(now.BytesReserved, Is.GreaterThanOrEqualTo(26 * 8));
        }

        [Test]
        public void dispose_may_be_called_twice_and_use_after_it_throws()
        {
            UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Handle<int> handle = allocator.AllocateHandle();
            AllocatorScope<int> scope = allocator.BeginScope();
            allocator.Dispose();
            allocator.Dispose();
            scope.Dispose();
            Assert.IsTrue(allocator.IsDisposed);
            Assert.Throws<ObjectDisposedException>(() => allocator.Allocate());
            Assert.Throws<ObjectDisposedException>(() => allocator.AllocatePtr());
            Assert.Throws<ObjectDisposedException>(() => allocator.AllocateSpan(3));
            Assert.Throws<ObjectDisposedException>(() => allocator.AllocateSpan(0));
            Assert.Throws<ObjectDisposedException>(() => allocator.AllocateHandle());
            Assert.Throws<ObjectDisposedException>(() => allocator.Get(handle));
            Assert.Throws<ObjectDisposedException>(() => allocator.Free(handle));
            Assert.Throws<ObjectDisposedException>(() => allocator.Reset());
            Assert.Throws<ObjectDisposedException>(() => allocator.BeginScope());
            Assert.AreEqual(0, allocator.Statistics.BytesReserved);
        }

        [Test]
        public void bad_arguments_are_named()
        {
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedAllocator<int>(0));
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedAllocator<int>(alignment: 3));
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedAllocator<int>(alignment: 32768));
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Assert.Throws<ArgumentOutOfRangeException>(() => allocator.AllocateSpan(-1));
        }

        [Test]
        public void memory_that_is_not_there_is_reported_and_leaves_the_allocator_usable()
        {
            using UnmanagedAllocator<Large> allocator = new UnmanagedAllocator<Large>(int.MaxValue);
            Assert.Throws<OutOfMemoryException>(() => allocator.Allocate(), "a block of 2 PB");
            Assert.AreEqual(0, allocator.Statistics.LiveItems);
            Assert.Throws<OutOfMemoryException>(() => allocator.AllocatePtr());
        }

        [Test]
        public void an_allocator_that_nobody_disposed_of_is_reported_with_its_place()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.OnWithStacks);
            ForgetOneOnAnotherThread();
            for (int i = 0; i < 20 && leaks.CountOf("Forgotten") == 0; i++)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                Thread.Sleep(5);
            }

            Assert.AreEqual(1, leaks.CountOf("UnmanagedAllocator<Forgotten> with 3 items"), leaks.All);
            StringAssert.Contains(nameof(ForgetOne), leaks.All);
        }

        [Test]
        public void the_steady_state_allocates_nothing_on_the_collected_heap()
        {
            using UnmanagedAllocator<Entity> allocator = new UnmanagedAllocator<Entity>(100);
            AllocationAssert.Zero(
                () =>
                {
                    using (allocator.BeginScope())
                    {
                        for (int i = 0; i < 1000; i++)
                        {
                            allocator.Allocate().Id = 1;
                            allocator.AllocateSpan(3)[2].Id = 2;
                            allocator.Get(allocator.AllocateHandle()).Id = 3;
                        }
                    }
                },
                warmUps: 2);
        }

        [TestCase(1)]
        [TestCase(2)]
        [TestCase(3)]
        public void random_use_agrees_with_a_simple_model(int seed)
        {
            Random random = new Random(seed);
            using UnmanagedAllocator<Entity> allocator =
                new UnmanagedAllocator<Entity>(random.Next(1, 50), zeroed: true);
            Dictionary<Handle<Entity>, ulong> live = new Dictionary<Handle<Entity>, ulong>();
            List<Handle<Entity>> dead = new List<Handle<Entity>>();
            Stack<(AllocatorScope<Entity> Scope, List<Handle<Entity>> Within)> scopes =
                new Stack<(AllocatorScope<Entity>, List<Handle<Entity>>)>();
            ulong next = 1;
            for (int step = 0; step < 20000; step++)
            {
                int choice = random.Next(100);
                if (choice < 50)
                {
                    Handle<Entity> handle = allocator.AllocateHandle();
                    Assert.AreEqual(0UL, allocator.Get(handle).Id);
                    allocator.Get(handle).Id = next;
                    live.Add(handle, next++);
                    if (scopes.Count > 0)
                    {
                        scopes.Peek().Within.Add(handle);
                    }
                }
                else if (choice < 85 && live.Count > 0)
                {
                    Handle<Entity> handle = Any(live, random);
                    allocator.Free(handle);
                    live.Remove(handle);
                    dead.Add(handle);
                }
                else if (choice < 90 && scopes.Count < 5)
                {
                    scopes.Push((allocator.BeginScope(), new List<Handle<Entity>>()));
                }
                else if (choice < 96 && scopes.Count > 0)
                {
                    (AllocatorScope<Entity> scope, List<Handle<Entity>> within) = scopes.Pop();
                    scope.Dispose();
                    foreach (Handle<Entity> handle in within)
                    {
                        if (live.Remove(handle))
                        {
                            dead.Add(handle);
                        }
                    }
                }
                else if (choice == 99 && step % 7 == 0)
                {
                    allocator.Reset();
                    dead.AddRange(live.Keys);
                    live.Clear();
                    scopes.Clear();
                }

                Assert.AreEqual(live.Count, allocator.Statistics.LiveItems);
                Assert.AreEqual(live.Count, allocator.Statistics.LiveHandles);
                if (dead.Count > 0)
                {
                    Assert.IsFalse(allocator.TryGet(dead[random.Next(dead.Count)], out _));
                }

                if (step % 100 == 0)
                {
                    foreach (KeyValuePair<Handle<Entity>, ulong> pair in live)
                    {
                        Assert.AreEqual(pair.Value, allocator.Get(pair.Key).Id);
                    }
                }
            }
        }

        private static Handle<Entity> Any(Dictionary<Handle<Entity>, ulong> live, Random random)
        {
            int skip = random.Next(Math.Min(live.Count, 20));
            foreach (Handle<Entity> handle in live.Keys)
            {
                if (skip-- == 0)
                {
                    return handle;
                }
            }

            throw new InvalidOperationException();
        }

        /// <summary>On its own thread, so that a conservative collector does not scan the stack afterwards.</summary>
        private static void ForgetOneOnAnotherThread()
        {
            Thread thread = new Thread(ForgetOne);
            thread.Start();
            thread.Join();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void ForgetOne()
        {
            UnmanagedAllocator<Forgotten> allocator = new UnmanagedAllocator<Forgotten>();
            allocator.AllocateSpan(3)[0].Value = 1;
        }

        internal struct Entity
        {
            public ulong Id;
            public double Score;
            public byte Attribute1;
            public byte Attribute2;
            public float ConsolidatedScore;
        }

        [StructLayout(LayoutKind.Sequential, Pack = 1)]
        internal struct Packed
        {
            public ulong Id;
            public double Score;
            public byte Attribute1;
            public byte Attribute2;
            public float ConsolidatedScore;
        }

        [StructLayout(LayoutKind.Sequential, Size = 1000 * 1000)]
        private struct Large
        {
            public byte First;
        }

        private struct Forgotten
        {
            public int Value;
        }
    }
}
