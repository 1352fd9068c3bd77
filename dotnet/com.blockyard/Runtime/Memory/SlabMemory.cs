using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Gets slabs of memory from Linux, whose pages can be populated a block at a time instead of by one fault
    /// each.</summary>
    /// <remarks>
    /// Only the system calls; <see cref="SlabPages"/> decides which pages a block gets. Slabs are aligned to huge
    /// pages, so a system that uses huge pages everywhere uses them here. Any thread. A call makes one to three system
    /// calls and allocates nothing.
    /// </remarks>
    internal static unsafe class SlabMemory
    {
        /// <summary>The alignment and granularity of slabs in bytes: the size of a huge page.</summary>
        internal const long Unit = 2 * 1024 * 1024;

        internal const long SmallPage = 4096;

        private const string Library = "libc";
        private const int ReadWrite = 3;
        private const int PrivateAnonymous = 0x22;
        private const int PopulateForWriting = 23;
        private const int HugePage = 14;
        private const int ThreadCpuTime = 3;

        /// <summary>The largest small page of any supported kernel.</summary>
        private const long LargestSmallPage = 64 * 1024;

        private static readonly Lazy<bool> Available = new Lazy<bool>(Probe);

        internal static bool IsAvailable => Available.Value;

        internal static long RoundUp(long bytes) => checked(bytes + Unit - 1) & ~(Unit - 1);

        /// <summary>Zeroed memory. A page uses no memory before it is touched.</summary>
        /// <param name="bytes">A multiple of the alignment.</param>
        /// <param name="alignment">A power of two, and a multiple of every system's pages.</param>
        /// <returns>Null when the system has no memory.</returns>
        internal static byte* Take(long bytes, long alignment = Unit)
        {
            // Maps more than needed, and unmaps what lies before and after the aligned part.
            long mapped = checked(bytes + alignment);
            byte* start = Map(mapped, ReadWrite);
            if (start == null)
            {
                return null;
            }

            long before = -(long)start & (alignment - 1);
            byte* aligned = start + before;
            if (before > 0)
            {
                munmap(start, (UIntPtr)(ulong)before);
            }

            munmap(aligned + bytes, (UIntPtr)(ulong)(alignment - before));
            return aligned;
        }

        /// <summary>Unmaps a whole result of <see cref="Take"/>.</summary>
        internal static void Give(byte* start, long bytes) => munmap(start, (UIntPtr)(ulong)bytes);

        /// <summary>Populates the pages of a range in one call.</summary>
        /// <param name="start">A multiple of <see cref="SmallPage"/>.</param>
        /// <param name="bytes">Any number, rounded up to whole pages.</param>
        /// <returns>False on a kernel before 5.14, where pages come one by one with their first use, and when memory
        /// has run out.</returns>
        internal static bool Populate(byte* start, long bytes) =>
            Advise(start, bytes, PopulateForWriting);

        /// <summary>Requests a huge page for the <see cref="Unit"/> at this address. If the kernel grants it, it comes
        /// with the first write.</summary>
        internal static bool AdviseHuge(byte* piece) => Advise(piece, Unit, HugePage);

        /// <summary>Requests huge pages for a block that will be written all over and accessed at random.</summary>
        internal static void AdviseHugeWithin(void* block, long bytes)
        {
            byte* first = RawMemory.Align((byte*)block, (int)Unit);
            long whole = ((byte*)block + bytes - first) & ~(Unit - 1);
            if (whole > 0 && SlabPages.MayAsk && IsAvailable)
            {
                Advise(first, whole, HugePage);
            }
        }

        /// <summary>Maps zeroed pages, which use no memory before they are touched. Null when the system has
        /// none.</summary>
        internal static byte* Map(long bytes, int protection)
        {
            void* start = mmap(null, (UIntPtr)(ulong)bytes, protection, PrivateAnonymous, -1, IntPtr.Zero);
            return (long)start == -1 ? null : (byte*)start;
        }

        internal static bool Advise(byte* start, long bytes, int advice) =>
            madvise(start, (UIntPtr)(ulong)bytes, advice) == 0;

        /// <summary>Whether a piece is a huge page: only its beginning was written, and its end is resident.</summary>
        internal static bool IsWholePieceResident(byte* piece) => IsResident(piece + Unit - LargestSmallPage);

        /// <summary>Whether a page was populated or used.</summary>
        /// <param name="page">A multiple of <see cref="SmallPage"/>.</param>
        internal static bool IsResident(byte* page)
        {
            byte resident = 0;
            return mincore(page, (UIntPtr)(ulong)SmallPage, &resident) == 0 && (resident & 1) != 0;
        }

        /// <summary>CPU time of the calling thread. Unlike wall-clock time it does not include other
        /// programs.</summary>
        internal static long ThreadNanoseconds()
        {
            long* time = stackalloc long[2];
            clock_gettime(ThreadCpuTime, time);
            return (time[0] * 1000000000) + time[1];
        }

        /// <summary>Calls the functions of <see cref="SlabPages"/> once, so that binding them does not count as the
        /// price of a page. Apart from the probe: an allocator whose items are not written needs none of
        /// them.</summary>
        internal static bool BindForPages()
        {
            ThreadNanoseconds();
            return Populate(null, 0);
        }

        private static bool Probe()
        {
            if (IntPtr.Size != 8 || !RuntimeInformation.IsOSPlatform(OSPlatform.Linux))
            {
                return false;
            }

            try
            {
                byte* page = Take(Unit);
                if (page != null)
                {
                    IsResident(page);
                    Give(page, Unit);
                }

                return page != null;
            }
            catch (TypeLoadException)
            {
                // The library or a function of it is not there.
                return false;
            }
        }

        [DllImport(Library)]
        private static extern void* mmap(
            void* address, UIntPtr bytes, int protection, int flags, int descriptor, IntPtr offset);

        [DllImport(Library)]
        private static extern int munmap(void* address, UIntPtr bytes);

        [DllImport(Library)]
        private static extern int madvise(void* address, UIntPtr bytes, int advice);

        [DllImport(Library)]
        private static extern int mincore(void* address, UIntPtr bytes, byte* pages);

        [DllImport(Library)]
        private static extern int clock_gettime(int clock, long* time);
    }
}
