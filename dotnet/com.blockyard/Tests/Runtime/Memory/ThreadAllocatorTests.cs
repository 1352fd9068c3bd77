using System;
using System.Collections.Generic;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;
using static Blockyard.Tests.FreshThread;

namespace Blockyard.Tests
{
    /// <summary>The allocator of a thread gives the same blocks. Each test runs on its own thread.</summary>
    [TestFixture]
    public unsafe class ThreadAllocatorTests
    {
        [Test]
        public void its_temp_blocks_lie_behind_those_of_ordinary_calls_and_before_the_next() => OnFreshThread(() =>
        {
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            byte* first = (byte*)UnmanagedMemory.Malloc(4, 4, Lifetime.Temp);
            byte* second = (byte*)thread.MallocTemp(4, 4);
            byte* third = (byte*)UnmanagedMemory.Malloc(4, 4, Lifetime.Temp);
            Assert.AreEqual(4, (long)second - (long)first);
            Assert.AreEqual(4, (long)third - (long)second);
            FrameMemory.EndThreadFrame();
        });

        [Test]
        public void temp_blocks_are_aligned_apart_and_writable() => OnFreshThread(() =>
        {
            RandomBlocks.Check(
                11,
                (size, alignment) => UnmanagedMemory.ThisThread.MallocTemp(size, alignment),
                block => UnmanagedMemory.ThisThread.FreeTemp(block));
            FrameMemory.EndThreadFrame();
        });

        [Test]
        public void temp_job_blocks_are_aligned_apart_and_writable() => OnFreshThread(() => RandomBlocks.Check(
            12,
            (size, alignment) => UnmanagedMemory.ThisThread.MallocTempJob(size, alignment),
            block => UnmanagedMemory.ThisThread.FreeTempJob(block)));

        [Test]
        public void freeing_the_newest_temp_block_takes_it_back() => OnFreshThread(() =>
        {
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            void* kept = thread.MallocTemp(16, 16);
            void* newest = thread.MallocTemp(64, 16);
            thread.FreeTemp(newest);
            Assert.IsTrue(thread.MallocTemp(64, 16) == newest);
            thread.FreeTemp(kept);
            Assert.IsTrue(thread.MallocTemp(16, 16) != kept, "an older block waits for the frame's end");
            FrameMemory.EndThreadFrame();
        });

        [Test]
        public void it_outlives_frames_and_each_frame_starts_with_an_empty_region() => OnFreshThread(() =>
        {
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            void* first = thread.MallocTemp(100, 4);
            FrameMemory.EndThreadFrame();
            Assert.IsTrue(thread.MallocTemp(100, 4) == first);
            FrameMemory.EndThreadFrame();
        });

        [Test]
        public void what_does_not_fit_the_region_overflows_and_is_counted() => OnFreshThread(() =>
        {
            FrameMemory.SetThreadTempCapacity(1024);
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            thread.MallocTemp(1000, 8);
            void* full = thread.MallocTemp(100, 8);
            thread.MallocTemp(5000, 8);
            thread.FreeTemp(full);
            Assert.AreEqual(1, FrameMemory.ThreadStatistics.OverflowFull);
            Assert.AreEqual(1, FrameMemory.ThreadStatistics.OverflowTooLarge);
            FrameMemory.EndThreadFrame();
        });

        [Test]
        public void a_temp_job_block_of_one_thread_is_freed_by_another() => OnFreshThread(() =>
        {
            List<IntPtr> blocks = new List<IntPtr>();
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            for (int i = 0; i < 20000; i++)
            {
                blocks.Add((IntPtr)thread.MallocTempJob(64, 16));
            }

            long held = FrameMemory.TempJobBytesHeld;
            OnFreshThread(() =>
            {
                ThreadAllocator other = UnmanagedMemory.ThisThread;
                foreach (IntPtr block in blocks)
                {
                    other.FreeTempJob((void*)block);
                }
            });
            for (int i = 0; i < 16000; i++)
            {
                thread.MallocTempJob(64, 16);
            }

            Assert.LessOrEqual(FrameMemory.TempJobBytesHeld, held, "the regions are used again");
        });

        [Test]
        public void leak_detection_sees_its_blocks()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.On);
            OnFreshThread(() =>
            {
                ThreadAllocator thread = UnmanagedMemory.ThisThread;
                int before = UnmanagedMemory.ReportLiveBlocks();
                void* block = thread.MallocTempJob(24, 8);
                Assert.AreEqual(before + 1, UnmanagedMemory.ReportLiveBlocks());
                thread.FreeTempJob(block);
                Assert.AreEqual(before, UnmanagedMemory.ReportLiveBlocks());
            });
        }

        [Test]
        public void wrong_arguments_are_refused_as_by_ordinary_calls() => OnFreshThread(() =>
        {
            foreach (int alignment in new[] { 0, -8, 3, 24, 2 * UnmanagedMemory.LargestAlignment, int.MinValue })
            {
                Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.ThisThread.MallocTemp(8, alignment));
                Assert.Throws<ArgumentOutOfRangeException>(
                    () => UnmanagedMemory.ThisThread.MallocTempJob(8, alignment));
            }

            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.ThisThread.MallocTemp(-1, 8));
            Assert.Throws<ArgumentOutOfRangeException>(
                () => UnmanagedMemory.ThisThread.MallocTempJob(long.MinValue, 8));
            Assert.Throws<OutOfMemoryException>(() => UnmanagedMemory.ThisThread.MallocTemp(long.MaxValue, 8));
        });

        [Test]
        public void null_may_be_freed() => OnFreshThread(() =>
        {
            UnmanagedMemory.ThisThread.FreeTemp(null);
            UnmanagedMemory.ThisThread.FreeTempJob(null);
        });

        [Test]
        public void the_default_value_has_no_thread()
        {
            Assert.Throws<NullReferenceException>(() => default(ThreadAllocator).MallocTemp(8, 8));
            Assert.Throws<NullReferenceException>(() => default(ThreadAllocator).MallocTempJob(8, 8));
            Assert.Throws<NullReferenceException>(() => default(ThreadAllocator).FreeTemp(null));
            Assert.Throws<NullReferenceException>(() => default(ThreadAllocator).FreeTempJob(null));
        }

        [Test]
        public void a_frame_allocates_nothing_on_the_collected_heap() => OnFreshThread(() =>
        {
            Frame();
            AllocationAssert.Zero(Frame);
        });

        private static void Frame()
        {
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            for (int i = 0; i < 100; i++)
            {
                thread.FreeTemp(thread.MallocTemp(64, 8));
                thread.FreeTempJob(thread.MallocTempJob(64, 8));
            }

            FrameMemory.EndThreadFrame();
        }
    }
}
