using System;
using System.IO;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Populates the small pages of a range by letting Linux copy zeros into them with userfaultfd. This takes
    /// a shorter path through the kernel than the page faults of <see cref="SlabMemory.Populate"/>.</summary>
    /// <remarks>
    /// <para>One call registers, fills and unregisters the range. The range is not handed out before that, so no thread
    /// ever waits for one of its pages. The source of the copy is the kernel's zero page. Any thread may call it. It
    /// makes four system calls and no garbage.</para>
    /// <para>It needs 64-bit Linux 5.11 or later, and a process without a seccomp filter, because a filter may kill a
    /// process for an unknown system call. <c>BLOCKYARD_USERFAULTFD=0</c> turns it off. After the first failure, for
    /// example when the program closed the descriptor, it is not tried again.</para>
    /// </remarks>
    internal static unsafe class PageCopies
    {
        /// <summary>The shortest range in bytes: for less, registering costs more than copying saves.</summary>
        internal const long Least = 256 * 1024;

        private const string Library = "libc";
        private const int CloseOnExec = 0x80000;
        private const int FaultsOfUserModeOnly = 1;
        private const ulong Version = 0xAA;
        private const ulong Missing = 1;
        private const int ReadOnly = 1;
        private const int NoHugePage = 15;

        /// <summary>Bytes of zeros that one call copies from. They are all the same physical page.</summary>
        private const long SourceBytes = 1024 * 1024;

        // _IOWR(0xAA, n, size of the struct) and similar; the same on x86-64 and 64-bit Arm.
        private const ulong SetVersion = 0xC018AA3F;
        private const ulong Register = 0xC020AA00;
        private const ulong Unregister = 0x8010AA01;
        private const ulong Copy = 0xC028AA03;

        private static readonly Lazy<bool> Opened = new Lazy<bool>(Open);
        private static readonly Closer AtUnload = new Closer();
        private static int descriptor = -1;
        private static byte* zeros;
        private static int process;
        private static volatile bool failed;

        internal static bool IsAvailable => !failed && Opened.Value;

        /// <summary>Populates a range of which no page is present yet.</summary>
        /// <param name="start">A multiple of a page.</param>
        /// <param name="bytes">A multiple of a page.</param>
        /// <returns>False when not all pages were populated. The others come with their first use, as usual.</returns>
        internal static bool TryFill(byte* start, long bytes)
        {
            // A descriptor belongs to the process that opened it, even in a child that inherited it.
            if (!IsAvailable || getpid() != process)
            {
                return false;
            }

            RegisteredRange range = new RegisteredRange { Start = (ulong)start, Bytes = (ulong)bytes, Mode = Missing };
            if (ioctl(descriptor, (UIntPtr)Register, &range) != 0)
            {
                failed = true;
                return false;
            }

            bool filled = true;
            for (long at = 0; at < bytes && filled; at += SourceBytes)
            {
                Copied part = new Copied
                {
                    To = (ulong)start + (ulong)at,
                    From = (ulong)zeros,
                    Bytes = (ulong)Math.Min(SourceBytes, bytes - at),
                };
                filled = ioctl(descriptor, (UIntPtr)Copy, &part) == 0;
            }

            if (ioctl(descriptor, (UIntPtr)Unregister, &range) != 0)
            {
                // A thread would wait for pages that stay registered. Closing the descriptor ends all registrations.
                failed = true;
                close(descriptor);
            }

            failed |= !filled;
            return filled;
        }

        private static bool Open()
        {
            try
            {
                int number = RuntimeInformation.ProcessArchitecture switch
                {
                    Architecture.X64 => 323,
                    Architecture.Arm64 => 282,
                    _ => 0,
                };
                if (number == 0 || !SlabMemory.IsAvailable || !IsUnwatched()
                    || Environment.GetEnvironmentVariable("BLOCKYARD_USERFAULTFD") == "0")
                {
                    return false;
                }

                descriptor = (int)syscall((IntPtr)number, (IntPtr)(CloseOnExec | FaultsOfUserModeOnly));
                Interface wanted = new Interface { Version = Version };
                if (descriptor < 0 || ioctl(descriptor, (UIntPtr)SetVersion, &wanted) != 0)
                {
                    return false;
                }

                zeros = SlabMemory.Map(SourceBytes, ReadOnly);
                if (zeros == null)
                {
                    return false;
                }

                SlabMemory.Advise(zeros, SourceBytes, NoHugePage);
                byte all = 0;
                for (long at = 0; at < SourceBytes; at += SlabMemory.SmallPage)
                {
                    // A page must be read once before it can be copied from.
                    all |= System.Threading.Volatile.Read(ref zeros[at]);
                }

                process = getpid();
                return all == 0;
            }
            catch (Exception error) when (error is EntryPointNotFoundException || error is DllNotFoundException
                || error is IOException || error is UnauthorizedAccessException)
            {
                return false;
            }
        }

        /// <summary>Gives back the descriptor and the zeros when the domain ends, which Unity does at each
        /// reload.</summary>
        private sealed class Closer
        {
            ~Closer()
            {
                if (AppDomain.CurrentDomain.IsFinalizingForUnload() && Opened.IsValueCreated && IsAvailable)
                {
                    failed = true;
                    close(descriptor);
                    SlabMemory.Give(zeros, SourceBytes);
                }
            }
        }

        private static bool IsUnwatched()
        {
            foreach (string line in File.ReadAllLines("/proc/self/status"))
            {
                if (line.StartsWith("Seccomp:", StringComparison.Ordinal))
                {
                    return line.Substring("Seccomp:".Length).Trim() == "0";
                }
            }

            return false;
        }

        [DllImport(Library)]
        private static extern IntPtr syscall(IntPtr number, IntPtr flags);

        [DllImport(Library)]
        private static extern int ioctl(int descriptor, UIntPtr request, void* argument);

        [DllImport(Library)]
        private static extern int close(int descriptor);

        [DllImport(Library)]
        private static extern int getpid();

#pragma warning disable CS0649 // the kernel assigns the rest
        /// <summary>struct uffdio_api.</summary>
        private struct Interface
        {
            internal ulong Version;
            internal ulong Features;
            internal ulong Calls;
        }

        /// <summary>struct uffdio_register, which begins with a struct uffdio_range.</summary>
        private struct RegisteredRange
        {
            internal ulong Start;
            internal ulong Bytes;
            internal ulong Mode;
            internal ulong Calls;
        }

        /// <summary>struct uffdio_copy.</summary>
        private struct Copied
        {
            internal ulong To;
            internal ulong From;
            internal ulong Bytes;
            internal ulong Mode;
            internal long Done;
        }
#pragma warning restore CS0649
    }
}
