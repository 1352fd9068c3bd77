using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Memory straight from Linux, on huge pages where the system allows them to those who ask (madvise).</summary>
    /// <remarks>
    /// A page of 2 MiB costs one fault where pages of 4 KiB cost 512, which is most of what filling fresh memory costs. A
    /// system that allows none gives ordinary pages. Any thread. A call is one to four system calls.
    /// </remarks>
    internal static unsafe class HugePages
    {
        /// <summary>Bytes of a huge page, and the alignment and the unit of what is taken here.</summary>
        internal const long PageSize = 2 * 1024 * 1024;

        private const string Library = "libc";
        private const int ReadWrite = 3;
        private const int PrivateAnonymous = 0x22;
        private const int AdviseHuge = 14;

        private static readonly Lazy<bool> Available = new Lazy<bool>(Probe);

        internal static bool IsAvailable => Available.Value;

        internal static long RoundUp(long bytes) => checked(bytes + PageSize - 1) & ~(PageSize - 1);

        /// <summary>Zeroed memory at a multiple of <see cref="PageSize"/>; nothing of it is used before it is touched.</summary>
        /// <param name="bytes">A multiple of <see cref="PageSize"/>.</param>
        /// <returns>Null when the system has none.</returns>
        internal static byte* Take(long bytes)
        {
            // One page more than asked for, of which the ends before and after the aligned part go back at once.
            long mapped = checked(bytes + PageSize);
            byte* start = (byte*)mmap(null, (UIntPtr)(ulong)mapped, ReadWrite, PrivateAnonymous, -1, IntPtr.Zero);
            if ((long)start == -1)
            {
                return null;
            }

            long before = (long)(PageSize - ((ulong)start & (ulong)(PageSize - 1))) & (PageSize - 1);
            byte* aligned = start + before;
            if (before > 0)
            {
                munmap(start, (UIntPtr)(ulong)before);
            }

            munmap(aligned + bytes, (UIntPtr)(ulong)(PageSize - before));

            // Advice: a kernel without huge pages refuses it, and the memory is as good as any.
            madvise(aligned, (UIntPtr)(ulong)bytes, AdviseHuge);
            return aligned;
        }

        /// <summary>Gives back what <see cref="Take"/> gave, whole.</summary>
        internal static void Give(byte* start, long bytes) => munmap(start, (UIntPtr)(ulong)bytes);

        private static bool Probe()
        {
            if (IntPtr.Size != 8 || !RuntimeInformation.IsOSPlatform(OSPlatform.Linux))
            {
                return false;
            }

            try
            {
                byte* page = Take(PageSize);
                if (page != null)
                {
                    Give(page, PageSize);
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
