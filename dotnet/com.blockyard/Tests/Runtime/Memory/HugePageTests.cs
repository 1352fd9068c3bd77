using System;
using System.Globalization;
using System.IO;
using System.Runtime.InteropServices;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Large allocators request huge pages from Linux. Whether it gives any, nothing else changes, and unused
    /// memory does not count towards the process.</summary>
    [TestFixture]
    public unsafe class HugePageTests
    {
        private const long MiB = 1024 * 1024;

        /// <summary>More than the unused part of one huge page (2 MiB), because the runtime's own memory
        /// varies.</summary>
        private const long Slack = 6 * MiB;

        private const int DisableHugePages = 41;

        private bool before;

        [SetUp]
        public void Remember()
        {
            before = UnmanagedMemory.HugePages;
            if (!SlabMemory.IsAvailable || !File.Exists("/proc/self/smaps_rollup"))
            {
                Assert.Ignore("this system does not tell how a process's memory is made up");
            }
        }

        [TearDown]
        public void Restore() => UnmanagedMemory.HugePages = before;

        [Test]
        public void a_process_asks_for_huge_pages_unless_its_environment_says_no() =>
            Assert.AreEqual(
                Environment.GetEnvironmentVariable("BLOCKYARD_HUGE_PAGES") != "0", UnmanagedMemory.HugePages);

        [TestCase(100L)]
        [TestCase(130L)]
        [TestCase(257L)]
        public void the_memory_that_is_resident_is_what_was_used_with_huge_pages(long mebibytes)
        {
            UnmanagedMemory.HugePages = true;
            long resident = Kilobytes("Rss:") * 1024;
            using (UnmanagedAllocator<Item> allocator = Filled(mebibytes * MiB))
            {
                long grown = (Kilobytes("Rss:") * 1024) - resident;
                Assert.AreEqual(allocator.Statistics.BytesUsed, grown, Slack);
                long huge = allocator.Statistics.BytesInHugePages;
                Assert.AreEqual(0, huge % (2 * MiB));
                Assert.LessOrEqual(huge, Kilobytes("AnonHugePages:") * 1024);
            }

            Assert.AreEqual(0, (Kilobytes("Rss:") * 1024) - resident, Slack);
        }

        [Test]
        public void a_large_allocator_that_wants_one_more_block_gets_little_more_memory()
        {
            UnmanagedMemory.HugePages = true;
            using UnmanagedAllocator<Item> allocator = Filled(192 * MiB);
            long resident = Kilobytes("Rss:") * 1024;
            long blocks = allocator.Statistics.Blocks;
            while (allocator.Statistics.Blocks < blocks + 3)
            {
                allocator.Allocate().First = 1;
            }

            Assert.LessOrEqual((Kilobytes("Rss:") * 1024) - resident, Slack);
        }

        [Test]
        public void a_process_that_wants_none_gets_small_pages()
        {
            UnmanagedMemory.HugePages = false;
            long huge = Kilobytes("AnonHugePages:");
            using UnmanagedAllocator<Item> allocator = Filled(100 * MiB);
            Assert.AreEqual(0, allocator.Statistics.BytesInHugePages);
            if (!GivenToEverybody())
            {
                Assert.LessOrEqual(Kilobytes("AnonHugePages:"), huge);
            }
        }

        [Test]
        public void a_process_that_may_have_none_gets_small_pages()
        {
            if (prctl(DisableHugePages, (IntPtr)1, IntPtr.Zero, IntPtr.Zero, IntPtr.Zero) != 0)
            {
                Assert.Ignore("this process can't be denied huge pages");
            }

            try
            {
                UnmanagedMemory.HugePages = true;
                bool copies = PageCopies.IsAvailable;
                long resident = Kilobytes("Rss:") * 1024;
                using UnmanagedAllocator<Item> allocator = Filled(100 * MiB);
                Assert.AreEqual(0, allocator.Statistics.BytesInHugePages);

                // The small page that came instead of a huge one was not copied again, which would have failed.
                Assert.AreEqual(copies, PageCopies.IsAvailable);
                Assert.AreEqual(allocator.Statistics.BytesUsed, (Kilobytes("Rss:") * 1024) - resident, Slack);
                Assert.IsTrue(UnmanagedMemory.HugePages);
            }
            finally
            {
                prctl(DisableHugePages, IntPtr.Zero, IntPtr.Zero, IntPtr.Zero, IntPtr.Zero);
            }
        }

        [Test]
        public void asking_for_them_leaves_no_garbage()
        {
            UnmanagedMemory.HugePages = true;
            using (Filled(80 * MiB))
            {
                // After this, every method has run once.
            }

            using UnmanagedAllocator<Item> allocator = Filled(80 * MiB);
            // An entry in the tables of blocks takes 40 bytes of the collected heap; timing a page takes none.
            int blocks = allocator.Statistics.Blocks;
            long before = GC.GetTotalMemory(false);
            int collections = GC.CollectionCount(0);
            for (int i = 0; i < 8 * MiB / sizeof(Item); i++)
            {
                allocator.Allocate().First = i;
            }

            if (GC.CollectionCount(0) == collections)
            {
                Assert.LessOrEqual(GC.GetTotalMemory(false) - before, 128 * 1024);
            }

            Assert.Greater(allocator.Statistics.Blocks, blocks);
        }

        private static UnmanagedAllocator<Item> Filled(long bytes)
        {
            UnmanagedAllocator<Item> allocator = new UnmanagedAllocator<Item>();
            for (long i = 0; i < bytes / sizeof(Item); i++)
            {
                ref Item item = ref allocator.Allocate();
                if ((item.First | item.Second | item.Third) != 0)
                {
                    Assert.Fail("item " + i + " is not cleared");
                }

                item.First = i;
                item.Third = ~i;
            }

            return allocator;
        }

        private static bool GivenToEverybody()
        {
            const string Mode = "/sys/kernel/mm/transparent_hugepage/enabled";
            return File.Exists(Mode) && File.ReadAllText(Mode).Contains("[always]");
        }

        private static long Kilobytes(string name)
        {
            foreach (string line in File.ReadAllLines("/proc/self/smaps_rollup"))
            {
                if (line.StartsWith(name, StringComparison.Ordinal))
                {
                    return long.Parse(
                        line.Substring(name.Length).Replace("kB", string.Empty).Trim(), CultureInfo.InvariantCulture);
                }
            }

            throw new InvalidOperationException("smaps_rollup has no " + name);
        }

        [DllImport("libc")]
        private static extern int prctl(int option, IntPtr second, IntPtr third, IntPtr fourth, IntPtr fifth);

        private struct Item
        {
            internal long First;
            internal long Second;
            internal long Third;
        }
    }
}
