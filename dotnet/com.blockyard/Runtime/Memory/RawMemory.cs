using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Gets unmanaged memory from the runtime, and does the arithmetic on addresses.</summary>
    internal static unsafe class RawMemory
    {
        /// <summary>The largest alignment that the allocators accept, in bytes.</summary>
        internal const int LargestAlignment = 16 * 1024;

        /// <summary>The alignment that <see cref="Marshal.AllocHGlobal(IntPtr)"/> guarantees, in bytes.</summary>
        internal static readonly int NaturalAlignment = IntPtr.Size * (IntPtr.Size == 8 ? 2 : 1);

        /// <summary>At least <paramref name="size"/> bytes. May call the operating system.</summary>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        internal static byte* Allocate(long size)
        {
            CheckSize(size);
            return (byte*)Marshal.AllocHGlobal(new IntPtr(size));
        }

        /// <summary>Makes memory of <see cref="Allocate"/> larger. Large memory moves by changing page tables, where
        /// the system can do that, and not by copying.</summary>
        /// <exception cref="OutOfMemoryException">There is not enough memory. The old memory is unchanged.</exception>
        internal static byte* Reallocate(byte* block, long size)
        {
            CheckSize(size);
            return (byte*)Marshal.ReAllocHGlobal((IntPtr)block, new IntPtr(size));
        }

        internal static void Free(byte* block) => Marshal.FreeHGlobal((IntPtr)block);

        /// <summary>The next multiple of a power of two.</summary>
        internal static byte* Align(byte* address, int alignment) =>
            (byte*)(((ulong)address + ((ulong)alignment - 1)) & ~((ulong)alignment - 1));

        internal static bool IsAlignment(int alignment) =>
            alignment > 0 && alignment <= LargestAlignment && (alignment & (alignment - 1)) == 0;

        internal static void CheckAlignment(int alignment)
        {
            if (!IsAlignment(alignment))
            {
                ThrowAlignment(alignment);
            }
        }

        /// <summary>The size of a block that a caller asked for: at least 1.</summary>
        /// <exception cref="ArgumentOutOfRangeException">It is negative, or the alignment is invalid.</exception>
        internal static long CheckedSize(long size, int alignment)
        {
            CheckAlignment(alignment);
            if (size < 0)
            {
                ThrowSize(size);
            }

            return Math.Max(size, 1);
        }

        internal static void Clear(void* block, long size) => Fill(block, size, 0);

        internal static void Fill(void* block, long size, byte value)
        {
            byte* at = (byte*)block;
            while (size > 0)
            {
                int part = (int)Math.Min(size, 1 << 30);
                new Span<byte>(at, part).Fill(value);
                at += part;
                size -= part;
            }
        }

        internal static void Copy(void* source, void* target, long size) =>
            Buffer.MemoryCopy(source, target, size, size);

        /// <summary>The alignment that the runtime gives <typeparamref name="T"/> inside another struct, in
        /// bytes.</summary>
        internal static int AlignmentOf<T>()
            where T : unmanaged
        {
            int alignment = sizeof(Beside<T>) - sizeof(T);

            // A packed struct has an alignment of 1.
            return IsAlignment(alignment) ? alignment : 1;
        }

        private static void ThrowAlignment(int alignment) => throw new ArgumentOutOfRangeException(
            nameof(alignment), alignment, "An alignment is a power of two up to " + LargestAlignment + ".");

        private static void ThrowSize(long size) =>
            throw new ArgumentOutOfRangeException(nameof(size), size, "A size is 0 or more.");

        private static void CheckSize(long size)
        {
            // Mono's AllocHGlobal does not check the sign.
            if (size < 0 || (IntPtr.Size == 4 && size > int.MaxValue))
            {
                throw new OutOfMemoryException("A block of " + size + " bytes cannot be addressed.");
            }
        }

        private struct Beside<T>
            where T : unmanaged
        {
#pragma warning disable CS0169, CS0649 // only their offsets matter
            private byte first;
            private T second;
#pragma warning restore CS0169, CS0649
        }
    }
}
