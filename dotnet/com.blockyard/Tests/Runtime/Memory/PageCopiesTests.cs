using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Pages that Linux copies into place are present and zero, and no thread ever waits for one.</summary>
    [TestFixture]
    public unsafe class PageCopiesTests
    {
        private const long Page = SlabMemory.SmallPage;
        private const long Bytes = 4 * SlabMemory.Unit;

        private byte* memory;

        [SetUp]
        public void Take()
        {
            if (!PageCopies.IsAvailable)
            {
                Assert.Ignore(
                    "this process has no userfaultfd: not 64-bit Linux 5.11 or later, under a filter, or turned off");
            }

            memory = SlabMemory.Take(Bytes);
        }

        [TearDown]
        public void Give()
        {
            if (memory != null)
            {
                SlabMemory.Give(memory, Bytes);
                memory = null;
            }
        }

        [Test]
        public void pages_that_were_filled_are_there_and_zero_and_no_others_are()
        {
            long[] sizes = { Page, PageCopies.Least, (3 * Page) + PageCopies.Least, SlabMemory.Unit };
            long at = Page;
            bool[] wanted = new bool[Bytes / Page];
            foreach (long size in sizes)
            {
                Assert.IsTrue(PageCopies.TryFill(memory + at, size));
                for (long i = 0; i < size; i += Page)
                {
                    wanted[(at + i) / Page] = true;
                }

                at += size + Page;
            }

            CollectionAssert.AreEqual(wanted, Resident());
            for (long i = 0; i < Bytes; i += 8)
            {
                if (*(long*)(memory + i) != 0)
                {
                    Assert.Fail("byte " + i + " is not zero");
                }
            }
        }

        [Test]
        public void what_is_written_to_filled_pages_stays_and_reaches_no_other()
        {
            Assert.IsTrue(PageCopies.TryFill(memory, SlabMemory.Unit));
            for (long i = 0; i < SlabMemory.Unit; i += 8)
            {
                *(long*)(memory + i) = i;
            }

            Assert.IsTrue(PageCopies.TryFill(memory + SlabMemory.Unit, SlabMemory.Unit));
            for (long i = 0; i < SlabMemory.Unit; i += 8)
            {
                if (*(long*)(memory + i) != i || *(long*)(memory + SlabMemory.Unit + i) != 0)
                {
                    Assert.Fail("byte " + i);
                }
            }
        }

        [Test]
        public void neighbours_that_were_not_filled_come_with_their_first_use_also_by_the_kernel()
        {
            Assert.IsTrue(PageCopies.TryFill(memory + SlabMemory.Unit, PageCopies.Least));

            // Uses memory right before and after the range, and reads a file into it. Neither may wait or fail.
            memory[SlabMemory.Unit - 1] = 1;
            AssertThatTheKernelCanWriteTo(memory + SlabMemory.Unit + PageCopies.Least);
        }

        [Test]
        public void a_filled_page_that_was_given_back_comes_again_with_its_next_use()
        {
            Assert.IsTrue(PageCopies.TryFill(memory, PageCopies.Least));
            const int DontNeed = 4;
            Assert.AreEqual(0, madvise(memory, (UIntPtr)(ulong)PageCopies.Least, DontNeed));

            // Lets the kernel write first: in a range that is still registered that fails, but a use would wait without
            // end.
            AssertThatTheKernelCanWriteTo(memory + Page);
            Assert.AreEqual(0, memory[0]);
        }

        [Test]
        public void stress_threads_that_fill_touch_and_give_back_meanwhile_collections_and_new_processes()
        {
            const int Rounds = 60;
            List<string> wrong = new List<string>();
            Thread[] threads = new Thread[4];
            for (int t = 0; t < threads.Length; t++)
            {
                int seed = t;
                threads[t] = new Thread(() =>
                {
                    Random random = new Random(seed);
                    for (int round = 0; round < Rounds; round++)
                    {
                        byte* mine = SlabMemory.Take(SlabMemory.Unit);
                        long start = random.Next(100) * Page;
                        long size = PageCopies.Least + (random.Next(300) * Page);
                        bool filled = PageCopies.TryFill(mine + start, size);
                        long sum = 0;
                        for (long i = 0; i < SlabMemory.Unit; i += Page)
                        {
                            sum += mine[i];
                            mine[i] = 1;
                        }

                        SlabMemory.Give(mine, SlabMemory.Unit);
                        if (!filled || sum != 0)
                        {
                            lock (wrong)
                            {
                                wrong.Add(
                                    "thread " + seed + ", round " + round + ": filled " + filled + ", sum " + sum);
                            }
                        }
                    }
                });
                threads[t].Start();
            }

            for (int i = 0; i < 5; i++)
            {
                // A new process starts as a copy of this one.
                using (Process child = Process.Start(new ProcessStartInfo("true") { UseShellExecute = false })!)
                {
                    child.WaitForExit();
                }

                GC.Collect();
            }

            foreach (Thread thread in threads)
            {
                thread.Join();
            }

            CollectionAssert.IsEmpty(wrong);
        }

        [Test]
        public void filling_leaves_no_garbage()
        {
            PageCopies.TryFill(memory, PageCopies.Least);
            byte* at = memory + PageCopies.Least;
            Blockyard.Diagnostics.AllocationAssert.Zero(() =>
            {
                PageCopies.TryFill(at, PageCopies.Least);
                at += PageCopies.Least;
            });
        }

        [Test]
        public void after_a_page_that_was_there_already_all_is_usable_and_pages_come_the_old_way()
        {
            if (Environment.GetEnvironmentVariable("BLOCKYARD_TEST_PAGE_COPIES") == null)
            {
                Assert.Ignore("runs in a process of its own: dotnet/run-tests starts it");
            }

            memory[PageCopies.Least - 1] = 1;
            Assert.IsFalse(PageCopies.TryFill(memory, 2 * PageCopies.Least));
            Assert.IsFalse(PageCopies.IsAvailable);
            memory[0] = 1;
            memory[(2 * PageCopies.Least) - 1] = 1;
            Assert.AreEqual(1, memory[PageCopies.Least - 1]);
            using UnmanagedAllocator<long> allocator = new UnmanagedAllocator<long>();
            for (long i = 0; i < Bytes; i++)
            {
                ref long item = ref allocator.Allocate();
                Assert.IsTrue(item == 0);
                item = i;
            }
        }

        private static void AssertThatTheKernelCanWriteTo(byte* place)
        {
            using (FileStream file = new FileStream("/proc/self/status", FileMode.Open, FileAccess.Read))
            {
                Assert.Greater(Read((int)file.SafeFileHandle.DangerousGetHandle(), place, (UIntPtr)100).ToInt64(), 0);
            }

            Assert.AreEqual((byte)'N', place[0]);
        }

        private bool[] Resident()
        {
            byte[] pages = new byte[Bytes / Page];
            bool[] resident = new bool[pages.Length];
            fixed (byte* found = pages)
            {
                Assert.AreEqual(0, mincore(memory, (UIntPtr)(ulong)Bytes, found));
            }

            for (int i = 0; i < pages.Length; i++)
            {
                resident[i] = (pages[i] & 1) != 0;
            }

            return resident;
        }

        [DllImport("libc")]
        private static extern int mincore(void* address, UIntPtr bytes, byte* pages);

        [DllImport("libc")]
        private static extern int madvise(void* address, UIntPtr bytes, int advice);

        [DllImport("libc", EntryPoint = "read")]
        private static extern IntPtr Read(int descriptor, byte* to, UIntPtr bytes);
    }
}
