using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;
using static Blockyard.Tests.FreshThread;

namespace Blockyard.Tests
{
    /// <summary>A test that needs an unused Temp region runs on its own thread.</summary>
    [TestFixture]
    public unsafe class LifetimeTests
    {
        [TestCase(Lifetime.Temp)]
        [TestCase(Lifetime.TempJob)]
        [TestCase(Lifetime.Persistent)]
        public void blocks_are_aligned_apart_and_writable(Lifetime lifetime) => OnFreshThread(() =>
        {
            RandomBlocks.Check(
                7,
                (size, alignment) => UnmanagedMemory.Malloc(size, alignment, lifetime),
                block => UnmanagedMemory.Free(block, lifetime));
            FrameMemory.EndThreadFrame();
        });

        [TestCase(Lifetime.Temp)]
        [TestCase(Lifetime.TempJob)]
        [TestCase(Lifetime.Persistent)]
        public void size_0_gives_a_block_and_null_may_be_freed(Lifetime lifetime)
        {
            void* block = UnmanagedMemory.Malloc(0, 8, lifetime);
            Assert.IsTrue(block != null);
            UnmanagedMemory.Free(block, lifetime);
            UnmanagedMemory.Free(null, lifetime);
        }

        [TestCase(Lifetime.Temp)]
        [TestCase(Lifetime.TempJob)]
        [TestCase(Lifetime.Persistent)]
        public void impossible_requests_are_refused_and_change_nothing(Lifetime lifetime) => OnFreshThread(() =>
        {
            Assert.Throws<OutOfMemoryException>(() => UnmanagedMemory.Malloc(long.MaxValue, 16, lifetime));
            Assert.Throws<OutOfMemoryException>(() => UnmanagedMemory.Malloc(1L << 60, 16384, lifetime));
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Malloc(-1, 16, lifetime));
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Malloc(8, 0, lifetime));
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Malloc(8, 24, lifetime));
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Malloc(8, 32768, lifetime));
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Malloc(8, int.MinValue, lifetime));
            Assert.AreEqual(0, FrameMemory.ThreadStatistics.TempUsed);
            Assert.AreEqual(0, FrameMemory.ThreadStatistics.OverflowTooLarge);
        });

        [Test]
        public void no_such_lifetime_is_refused()
        {
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Malloc(8, 8, (Lifetime)3));
            int local = 0;
            IntPtr block = (IntPtr)(&local);
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.Free((void*)block, (Lifetime)3));
        }

        [Test]
        public void temp_blocks_of_4_bytes_lie_side_by_side() => OnFreshThread(() =>
        {
            byte* before = (byte*)UnmanagedMemory.Malloc(4, 4, Lifetime.Temp);
            for (int i = 0; i < 1000; i++)
            {
                byte* next = (byte*)UnmanagedMemory.Malloc(4, 4, Lifetime.Temp);
                Assert.AreEqual(4, next - before);
                before = next;
            }
        });

        [Test]
        public void the_last_temp_block_is_taken_back_and_another_is_not() => OnFreshThread(() =>
        {
            void* first = UnmanagedMemory.Malloc(100, 4, Lifetime.Temp);
            void* second = UnmanagedMemory.Malloc(100, 4, Lifetime.Temp);
            UnmanagedMemory.Free(first, Lifetime.Temp);
            Assert.AreEqual(200, FrameMemory.ThreadStatistics.TempUsed);
            UnmanagedMemory.Free(second, Lifetime.Temp);
            Assert.AreEqual(100, FrameMemory.ThreadStatistics.TempUsed);
            Assert.IsTrue(second == UnmanagedMemory.Malloc(100, 4, Lifetime.Temp));
        });

        [Test]
        public void the_end_of_a_thread_s_frame_frees_all_its_temp() => OnFreshThread(() =>
        {
            void* first = UnmanagedMemory.Malloc(1000, 16, Lifetime.Temp);
            UnmanagedMemory.Malloc(1000, 16, Lifetime.Temp);
            FrameMemory.EndThreadFrame();
            Assert.AreEqual(0, FrameMemory.ThreadStatistics.TempUsed);
            Assert.IsTrue(
                first == UnmanagedMemory.Malloc(1000, 16, Lifetime.Temp), "the same memory serves the next frame");
        });

        [Test]
        public void a_full_temp_region_overflows_to_the_byte_and_is_counted() => OnFreshThread(() =>
        {
            FrameMemory.SetThreadTempCapacity(16 * 1024);
            UnmanagedMemory.Malloc((16 * 1024) - 1, 1, Lifetime.Temp);
            UnmanagedMemory.Malloc(1, 1, Lifetime.Temp);
            Assert.AreEqual(0, FrameMemory.ThreadStatistics.OverflowFull);
            void* full = UnmanagedMemory.Malloc(1, 1, Lifetime.Temp);
            Assert.AreEqual(1, FrameMemory.ThreadStatistics.OverflowFull);
            void* large = UnmanagedMemory.Malloc((16 * 1024) + 1, 1, Lifetime.Temp);
            Assert.AreEqual(1, FrameMemory.ThreadStatistics.OverflowTooLarge);
            Assert.AreEqual(1, FrameMemory.ThreadStatistics.OverflowFull);
            UnmanagedMemory.Free(full, Lifetime.Temp);
            UnmanagedMemory.Free(large, Lifetime.Temp);
            FrameMemory.EndThreadFrame();
        });

        [Test]
        public void overflowed_blocks_go_with_the_frame() => OnFreshThread(() =>
        {
            FrameMemory.TempCapacityLimit = 1024;
            try
            {
                FrameMemory.SetThreadTempCapacity(1024);
                long held = 0;
                for (int frame = 0; frame < 1000; frame++)
                {
                    for (int i = 0; i < 100; i++)
                    {
                        new Span<byte>(UnmanagedMemory.Malloc(1000, 8, Lifetime.Temp), 1000).Fill(1);
                    }

                    FrameMemory.EndThreadFrame();
                    held = frame == 10 ? FrameMemory.TempJobBytesHeld : held;
                }

                Assert.AreEqual(held, FrameMemory.TempJobBytesHeld, "a hundred megabytes went through");
            }
            finally
            {
                FrameMemory.TempCapacityLimit = 16 * 1024 * 1024;
            }
        });

        [Test]
        public void the_temp_region_grows_at_the_frame_s_end_towards_the_peak_up_to_the_limit() => OnFreshThread(() =>
        {
            FrameMemory.SetThreadTempCapacity(1024);
            UnmanagedMemory.Malloc(3000, 1, Lifetime.Temp);
            Assert.AreEqual(1024, FrameMemory.ThreadStatistics.TempCapacity, "never within a frame");
            FrameMemory.EndThreadFrame();
            Assert.AreEqual(4096, FrameMemory.ThreadStatistics.TempCapacity);
            UnmanagedMemory.Malloc(3000, 1, Lifetime.Temp);
            Assert.AreEqual(1, FrameMemory.ThreadStatistics.OverflowTooLarge, "it fits now");
            UnmanagedMemory.Malloc(40L * 1024 * 1024, 1, Lifetime.Temp);
            FrameMemory.EndThreadFrame();
            Assert.AreEqual(FrameMemory.TempCapacityLimit, FrameMemory.ThreadStatistics.TempCapacity);
        });

        [Test]
        public void statistics_are_a_histogram_of_the_frames_peaks() => OnFreshThread(() =>
        {
            FrameMemory.EndThreadFrame();
            UnmanagedMemory.Malloc(1024, 1, Lifetime.Temp);
            FrameMemory.EndThreadFrame();
            void* block = UnmanagedMemory.Malloc(1025, 1, Lifetime.Temp);
            UnmanagedMemory.Free(block, Lifetime.Temp);
            FrameMemory.EndThreadFrame();
            LifetimeStatistics statistics = FrameMemory.ThreadStatistics;
            Assert.AreEqual(3, statistics.Frames);
            Assert.AreEqual(1, statistics.FramesInBucket(0));
            Assert.AreEqual(1, statistics.FramesInBucket(1));
            Assert.AreEqual(1, statistics.FramesInBucket(2), "a peak counts although it was given back");
            Assert.AreEqual(1025, statistics.TempHighWater);
            StringAssert.Contains("[0 B]: 1 [1 B-1 KB]: 1 [1 KB-2 KB]: 1", statistics.ToString());
            System.IO.StringWriter dump = new System.IO.StringWriter();
            FrameMemory.WriteStatistics(dump);
            StringAssert.Contains(statistics.Thread, dump.ToString());
        });

        [Test]
        public void temp_job_blocks_may_be_freed_on_any_thread()
        {
            long before = 0;
            for (int round = 0; round < 300; round++)
            {
                IntPtr[] blocks = new IntPtr[2000];
                for (int i = 0; i < blocks.Length; i++)
                {
                    blocks[i] = (IntPtr)UnmanagedMemory.Malloc(400, 16, Lifetime.TempJob);
                    *(long*)blocks[i] = i;
                }

                FreshThread[] threads = new FreshThread[3];
                for (int t = 0; t < threads.Length; t++)
                {
                    int first = t;
                    threads[t] = new FreshThread(() =>
                    {
                        for (int i = first; i < blocks.Length; i += 4)
                        {
                            Assert.IsTrue(*(long*)blocks[i] == i);
                            UnmanagedMemory.Free((void*)blocks[i], Lifetime.TempJob);
                        }
                    });
                }

                for (int i = 3; i < blocks.Length; i += 4)
                {
                    UnmanagedMemory.Free((void*)blocks[i], Lifetime.TempJob);
                }

                foreach (FreshThread thread in threads)
                {
                    thread.JoinWithoutFailure();
                }

                before = round == 3 ? FrameMemory.TempJobBytesHeld : before;
            }

            Assert.LessOrEqual(FrameMemory.TempJobBytesHeld, before, "regions are used again: 240 MB went through");
        }

        [Test]
        public void the_regions_of_a_thread_that_ended_are_used_again()
        {
            long before = FrameMemory.TempJobBytesHeld;
            for (int i = 0; i < 400; i++)
            {
                OnFreshThread(() =>
                {
                    UnmanagedMemory.Malloc(100, 8, Lifetime.Temp);
                    UnmanagedMemory.Free(UnmanagedMemory.Malloc(100, 8, Lifetime.TempJob), Lifetime.TempJob);
                });
                if (i % 10 == 9)
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                }
            }

            // 400 threads with one region each would hold 100 MB. A few may wait for the collector.
            Assert.That(FrameMemory.TempJobBytesHeld - before, Is.LessThan(25L * 1024 * 1024));
        }

        [Test]
        public void a_temp_job_block_older_than_four_frames_is_reported_once_and_stays_valid()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.On);
            int* block = (int*)UnmanagedMemory.Malloc(1234, 4, Lifetime.TempJob);
            *block = 99;
            for (int frame = 1; frame <= 4; frame++)
            {
                FrameMemory.EndFrame();
                Assert.AreEqual(0, leaks.CountOf("1234 bytes"), "frame " + frame);
            }

            FrameMemory.EndFrame();
            Assert.AreEqual(1, leaks.CountOf("1234 bytes"), leaks.All);
            FrameMemory.EndFrame();
            Assert.AreEqual(1, leaks.CountOf("1234 bytes"), "once");
            Assert.AreEqual(99, *block);
            UnmanagedMemory.Free(block, Lifetime.TempJob);
        }

        [Test]
        public void threads_that_end_their_own_frames_do_not_age_temp_job()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.On);
            void* block = UnmanagedMemory.Malloc(1235, 4, Lifetime.TempJob);
            OnFreshThread(() =>
            {
                for (int i = 0; i < 20; i++)
                {
                    FrameMemory.EndThreadFrame();
                }
            });
            FrameMemory.EndFrame();
            Assert.AreEqual(0, leaks.CountOf("1235 bytes"));
            UnmanagedMemory.Free(block, Lifetime.TempJob);
        }

        [Test]
        public void a_report_with_stacks_names_the_place_that_allocated()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.OnWithStacks);
            void* block = AllocateHere(1236);
            for (int frame = 0; frame < 5; frame++)
            {
                FrameMemory.EndFrame();
            }

            StringAssert.Contains(nameof(AllocateHere), leaks.All);
            UnmanagedMemory.Free(block, Lifetime.TempJob);
        }

        [Test]
        public void nothing_is_reported_when_detection_is_off()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.Off);
            void* block = UnmanagedMemory.Malloc(1237, 4, Lifetime.TempJob);
            for (int frame = 0; frame < 6; frame++)
            {
                FrameMemory.EndFrame();
            }

            Assert.AreEqual(string.Empty, leaks.All);
            UnmanagedMemory.Free(block, Lifetime.TempJob);
        }

        [Test]
        public void turning_detection_on_and_off_affects_a_thread_that_has_blocks() => OnFreshThread(() =>
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.Off);
            void* before = UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob);
            UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob);
            OnFreshThread(() => LeakDetection.Mode = LeakMode.On);
            void* freedWhileOn = UnmanagedMemory.Malloc(1240, 8, Lifetime.TempJob);
            void* freedWhileOff = UnmanagedMemory.Malloc(1241, 8, Lifetime.TempJob);
            UnmanagedMemory.ReportLiveBlocks();
            Assert.AreEqual(1, leaks.CountOf("1240 bytes"), leaks.All);
            Assert.AreEqual(1, leaks.CountOf("1241 bytes"), leaks.All);

            UnmanagedMemory.Free(freedWhileOn, Lifetime.TempJob);
            OnFreshThread(() => LeakDetection.Mode = LeakMode.Off);
            UnmanagedMemory.Malloc(1242, 8, Lifetime.TempJob);
            UnmanagedMemory.Free(before, Lifetime.TempJob);
            UnmanagedMemory.Free(freedWhileOff, Lifetime.TempJob);
            UnmanagedMemory.ReportLiveBlocks();
            Assert.AreEqual(1, leaks.CountOf("1240 bytes"), "freed");
            Assert.AreEqual(1, leaks.CountOf("1241 bytes"), "freed, though after detection was turned off");
            Assert.AreEqual(0, leaks.CountOf("1242 bytes"), "allocated while it was off");
        });

        [Test]
        public void live_persistent_blocks_are_reported_on_request()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.On);
            void* block = UnmanagedMemory.Malloc(1238, 4, Lifetime.Persistent);
            UnmanagedMemory.ReportLiveBlocks();
            Assert.AreEqual(1, leaks.CountOf("a Persistent block of 1238 bytes"));
            UnmanagedMemory.Free(block, Lifetime.Persistent);
            UnmanagedMemory.ReportLiveBlocks();
            Assert.AreEqual(1, leaks.CountOf("1238 bytes"));
        }

        [Test]
        public void a_block_that_grows_after_detection_was_turned_off_is_not_reported_when_it_is_freed()
        {
            using CapturedLeaks leaks = new CapturedLeaks(LeakMode.On);
            UnmanagedList<long> list = new UnmanagedList<long>(1001, Lifetime.Persistent);
            LeakDetection.Mode = LeakMode.Off;
            list.EnsureCapacity(100000);
            list.Dispose();
            UnmanagedMemory.ReportLiveBlocks();
            Assert.AreEqual(0, leaks.CountOf("8008 bytes"), leaks.All);
        }

        [Test]
        public void a_thread_that_never_ends_a_frame_is_safe() => OnFreshThread(() =>
        {
            long sum = 0;
            for (int i = 0; i < 20000; i++)
            {
                int* block = (int*)UnmanagedMemory.Malloc(400, 4, Lifetime.Temp);
                *block = i;
                sum += *block;
            }

            Assert.AreEqual(20000L * 19999 / 2, sum);
        });

        [Test]
        public void every_lifetime_allocates_nothing_on_the_collected_heap()
        {
            using (new CapturedLeaks(LeakMode.Off))
            {
                AllocationAssert.Zero(
                    () =>
                    {
                        for (int i = 0; i < 1000; i++)
                        {
                            UnmanagedMemory.Malloc(64, 8, Lifetime.Temp);
                            UnmanagedMemory.Free(UnmanagedMemory.Malloc(64, 8, Lifetime.Temp), Lifetime.Temp);
                            UnmanagedMemory.Free(UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob), Lifetime.TempJob);
                            UnmanagedMemory.Free(
                                UnmanagedMemory.Malloc(64, 8, Lifetime.Persistent), Lifetime.Persistent);
                        }

                        FrameMemory.EndFrame();
                    },
                    warmUps: 3);
            }
        }

        [Test]
        public void checks_fill_temp_and_catch_a_block_of_an_ended_frame()
        {
            ChecksTests.Need();
            OnFreshThread(() =>
            {
                byte* block = (byte*)UnmanagedMemory.Malloc(64, 8, Lifetime.Temp);
                Assert.AreEqual(0xCD, block[63]);
                FrameMemory.EndThreadFrame();
                Assert.AreEqual(0xDD, block[63]);
                Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(block, Lifetime.Temp));
            });
        }

        [TestCase(Lifetime.TempJob, LeakMode.On)]
        [TestCase(Lifetime.TempJob, LeakMode.Off)]
        [TestCase(Lifetime.Persistent, LeakMode.On)]
        [TestCase(Lifetime.Persistent, LeakMode.Off)]
        public void checks_catch_a_block_that_is_freed_twice(Lifetime lifetime, LeakMode mode)
        {
            ChecksTests.Need();
            using (new CapturedLeaks(mode))
            {
                foreach (int size in new[] { 8, 1000, 1000000 })
                {
                    void* kept = UnmanagedMemory.Malloc(8, 8, lifetime);
                    void* block = UnmanagedMemory.Malloc(size, 8, lifetime);
                    UnmanagedMemory.Free(block, lifetime);
                    Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(block, lifetime));
                    UnmanagedMemory.Free(kept, lifetime);
                }
            }
        }

        [TestCase(Lifetime.TempJob, LeakMode.On)]
        [TestCase(Lifetime.TempJob, LeakMode.Off)]
        [TestCase(Lifetime.Persistent, LeakMode.On)]
        [TestCase(Lifetime.Persistent, LeakMode.Off)]
        public void checks_catch_an_address_that_is_no_block(Lifetime lifetime, LeakMode mode)
        {
            ChecksTests.Need();
            using (new CapturedLeaks(mode))
            {
                byte* block = (byte*)UnmanagedMemory.Malloc(1000, 8, lifetime);
                byte local;
                foreach (IntPtr address in new[] { (IntPtr)(block + 64), (IntPtr)(&local), (IntPtr)0x12345670 })
                {
                    Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free((void*)address, lifetime));
                }

                UnmanagedMemory.Free(block, lifetime);
            }
        }

        [Test]
        public void a_block_that_is_freed_twice_leaves_others_free_to_go()
        {
            ChecksTests.Need();
            using (new CapturedLeaks(LeakMode.Off))
            {
                void* twice = UnmanagedMemory.Malloc(8, 8, Lifetime.Persistent);
                void* other = UnmanagedMemory.Malloc(8, 8, Lifetime.Persistent);
                UnmanagedMemory.Free(twice, Lifetime.Persistent);
                Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(twice, Lifetime.Persistent));
                Assert.DoesNotThrow(() => UnmanagedMemory.Free(other, Lifetime.Persistent));
            }
        }

        [Test]
        public void checks_catch_a_block_that_is_freed_with_another_lifetime()
        {
            ChecksTests.Need();
            using (new CapturedLeaks(LeakMode.On))
            {
                void* job = UnmanagedMemory.Malloc(8, 8, Lifetime.TempJob);
                void* persistent = UnmanagedMemory.Malloc(8, 8, Lifetime.Persistent);
                Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(job, Lifetime.Persistent));
                Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(persistent, Lifetime.TempJob));
                Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.Free(job, Lifetime.Temp));
                UnmanagedMemory.Free(job, Lifetime.TempJob);
                UnmanagedMemory.Free(persistent, Lifetime.Persistent);
            }
        }

        [Test]
        public void checks_catch_a_temp_block_freed_on_another_thread()
        {
            ChecksTests.Need();
            IntPtr block = IntPtr.Zero;
            OnFreshThread(() => block = (IntPtr)UnmanagedMemory.Malloc(64, 8, Lifetime.Temp));
            OnFreshThread(() => Assert.Throws<InvalidOperationException>(
                () => UnmanagedMemory.Free((void*)block, Lifetime.Temp)));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void* AllocateHere(int size) => UnmanagedMemory.Malloc(size, 4, Lifetime.TempJob);
    }
}
