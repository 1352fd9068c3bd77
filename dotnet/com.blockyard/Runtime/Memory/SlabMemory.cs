using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Memory straight from Linux for slabs of blocks, whose pages can be had by the block and not by one fault each.</summary>
    /// <remarks>
    /// The system calls; which pages a block gets is for <see cref="SlabPages"/> to say. Slabs are aligned so that a system which
    /// gives huge pages to everybody gives them here. Any thread. A call is one to three system calls, and allocates nothing.
    /// </remarks>
    internal static unsafe class SlabMemory
    {
        /// <summary>The alignment and the unit of what is taken here, in bytes: a huge page's.</summary>
        internal const long Unit = 2 * 1024 * 1024;

        internal const long SmallPage = 4096;

        private const string Library = "libc";
        private const int ReadWrite = 3;
        private const int PrivateAnonymous = 0x22;
        private const int PopulateForWriting = 23;
        private const int HugePage = 14;
        private const int ThreadCpuTime = 3;

        /// <summary>The largest small page that any kernel has here.</summary>
        private const long LargestSmallPage = 64 * 1024;

        private static readonly Lazy<bool> Available = new Lazy<bool>(Probe);

        internal static bool IsAvailable => Available.Value;

        internal static long RoundUp(long bytes) => checked(bytes + Unit - 1) & ~(Unit - 1);

        /// <summary>Zeroed memory at a multiple of <see cref="Unit"/>; nothing of it is used before it is touched.</summary>
        /// <param name="bytes">A multiple of <see cref="Unit"/>.</param>
        /// <returns>Null when the system has none.</returns>
        internal static byte* Take(long bytes)
        {
            // One page more than asked for, of which the ends before and after the aligned part go back at once.
            long mapped = checked(bytes + Unit);
            byte* start = (byte*)mmap(null, (UIntPtr)(ulong)mapped, ReadWrite, PrivateAnonymous, -1, IntPtr.Zero);
            if ((long)start == -1)
            {
                return null;
            }

            long before = (long)(Unit - ((ulong)start & (ulong)(Unit - 1))) & (Unit - 1);
            byte* aligned = start + before;
            if (before > 0)
            {
                munmap(start, (UIntPtr)(ulong)before);
            }

            munmap(aligned + bytes, (UIntPtr)(ulong)(Unit - before));
            return aligned;
        }

        /// <summary>Gives back what <see cref="Take"/> gave, whole.</summary>
        internal static void Give(byte* start, long bytes) => munmap(start, (UIntPtr)(ulong)bytes);

        /// <summary>Takes the pages of a range, all at once.</summary>
        /// <param name="start">A multiple of <see cref="SmallPage"/>.</param>
        /// <param name="bytes">Any number: a last page counts whole.</param>
        /// <returns>False on a kernel before 5.14, which takes them one by one when they are used, and where memory has run out.</returns>
        internal static bool Populate(byte* start, long bytes) =>
            madvise(start, (UIntPtr)(ulong)bytes, PopulateForWriting) == 0;

        /// <summary>Asks for a huge page for the <see cref="Unit"/> at this address; it comes, if it does, with the first write.</summary>
        internal static bool AdviseHuge(byte* piece) => madvise(piece, (UIntPtr)(ulong)Unit, HugePage) == 0;

        /// <summary>Whether a piece of which only the beginning was written has memory to its end, and so is a huge page.</summary>
        internal static bool IsWholePieceResident(byte* piece)
        {
            byte resident = 0;
            byte* last = piece + Unit - LargestSmallPage;
            return mincore(last, (UIntPtr)(ulong)SmallPage, &resident) == 0 && (resident & 1) != 0;
        }

        /// <summary>CPU time of the calling thread: unlike a clock on the wall it does not count other programs as a page's price.</summary>
        internal static long ThreadNanoseconds()
        {
            long* time = stackalloc long[2];
            clock_gettime(ThreadCpuTime, time);
            return (time[0] * 1000000000) + time[1];
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
                    // Each entry is called once, so that no first call's binding counts as a page's price.
                    ThreadNanoseconds();
                    Populate(page, SmallPage);
                    IsWholePieceResident(page);
                    Give(page, Unit);
                }

                return page != null;
            }
            catch (DllNotFoundException)
            {
                return false;
            }
            catch (EntryPointNotFoundException)
            {
                return false;
            }
        }

        [DllImport(Library)]
        private static extern void* mmap(void* address, UIntPtr bytes, int protection, int flags, int descriptor, IntPtr offset);

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
