using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Memory straight from Linux for slabs of blocks, whose pages can be had by the block and not by one fault each.</summary>
    /// <remarks>
    /// Huge pages are not asked for (madvise): where memory is in pieces, the kernel makes them by moving other pages about while
    /// the program waits, which cost a run here twice what it saved another. Slabs are aligned so that a system which gives
    /// huge pages to everybody gives them here. Any thread. A call is one to three system calls.
    /// </remarks>
    internal static unsafe class SlabMemory
    {
        /// <summary>The alignment and the unit of what is taken here, in bytes: a huge page's.</summary>
        internal const long Unit = 2 * 1024 * 1024;

        /// <summary>The most bytes that <see cref="Prepare"/> takes pages for: of more, much may never be used.</summary>
        private const long LargestPrepared = 4 * 1024 * 1024;

        private const long SmallPage = 4096;
        private const string Library = "libc";
        private const int ReadWrite = 3;
        private const int PrivateAnonymous = 0x22;
        private const int PopulateForWriting = 23;

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

        /// <summary>Takes the pages of a block that is about to be filled, all at once. A kernel before 5.14 takes them one by one.</summary>
        internal static void Prepare(byte* block, long bytes)
        {
            if (bytes <= LargestPrepared)
            {
                byte* first = (byte*)((ulong)block & ~((ulong)SmallPage - 1));
                madvise(first, (UIntPtr)((ulong)block + (ulong)bytes - (ulong)first), PopulateForWriting);
            }
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
    }
}
