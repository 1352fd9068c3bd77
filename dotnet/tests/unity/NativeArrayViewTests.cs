using System;
using System.Reflection;
using Blockyard.Memory;
using Blockyard.Samples;
using NUnit.Framework;
using Unity.Collections;
using Unity.Collections.LowLevel.Unsafe;
using Unity.Jobs;

namespace Blockyard.Tests
{
    /// <summary>The bridge to NativeArray, on shapes of Unity's types.</summary>
    [TestFixture]
    public class NativeArrayViewTests
    {
        [Test]
        public void a_view_is_the_same_memory_and_its_safety_handle_ends_with_it()
        {
            int before = AtomicSafetyHandle.LiveCount;
            UnmanagedList<int> list = new UnmanagedList<int>(4, Lifetime.TempJob);
            list.Add(1);
            list.Add(2);
            NativeArrayView<int> view = list.AsNativeArray();
            NativeArray<int> array = view.Array;
            Assert.AreEqual(2, array.Length);
            array[1] = 5;
            Assert.AreEqual(5, list[1]);
#if ENABLE_UNITY_COLLECTIONS_CHECKS
            Assert.AreEqual(before + 1, AtomicSafetyHandle.LiveCount);
#endif
            view.Dispose();
            view.Dispose();
            Assert.AreEqual(before, AtomicSafetyHandle.LiveCount);
#if ENABLE_UNITY_COLLECTIONS_CHECKS
            Assert.Throws<ObjectDisposedException>(() => array[0] = 1);
#endif
            list.Dispose();
        }

        [Test]
        public void arrays_and_spans_of_unmanaged_memory_have_views_too()
        {
            UnmanagedArray<long> items = new UnmanagedArray<long>(3, Lifetime.Persistent);
            using (NativeArrayView<long> view = items.AsNativeArray())
            {
                NativeArray<long> array = view.Array;
                array[2] = 7;
                Assert.AreEqual(7, items[2]);
            }

            items.Dispose();
            Span<long> span = UnmanagedMemory.MallocSpan<long>(5, Lifetime.Temp);
            using (NativeArrayView<long> view = span.AsNativeArray())
            {
                Assert.AreEqual(5, view.Array.Length);
            }

            using (NativeArrayView<long> view = Span<long>.Empty.AsNativeArray())
            {
                Assert.AreEqual(0, view.Array.Length);
            }
        }

        [Test]
        public unsafe void a_job_may_have_regions_pointers_and_handles_as_fields()
        {
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            Ptr<int> result = allocator.AllocatePtr();
            Span<byte> scratch = UnmanagedMemory.MallocSpan<byte>(64, Lifetime.TempJob);
            fixed (byte* start = scratch)
            {
                new Counting
                {
                    Scratch = new BumpRegion(start, scratch.Length),
                    Result = result,
                    Last = allocator.AllocateHandle(),
                }.Run();
                Assert.AreEqual(64, result.Value);
                Assert.Throws<InvalidOperationException>(() => new Pointing { Start = (byte*)result.Address }.Run());
            }

            UnmanagedMemory.Free(scratch, Lifetime.TempJob);
        }

        [Test]
        public void the_sample_of_a_job_runs()
        {
            MethodInfo update = typeof(SmoothHeights).GetMethod(
                "Update", BindingFlags.Instance | BindingFlags.NonPublic)!;
            Assert.DoesNotThrow(() => update.Invoke(new SmoothHeights(), null));
        }

        private struct Counting : IJob
        {
            public BumpRegion Scratch;
            public Ptr<int> Result;
            public Handle<int> Last;

            public void Execute() => Result.Value = (int)Scratch.BytesLeft;
        }

        private unsafe struct Pointing : IJob
        {
            public byte* Start;

            public void Execute() => *Start = 1;
        }
    }
}
