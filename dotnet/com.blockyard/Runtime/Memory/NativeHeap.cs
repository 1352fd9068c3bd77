using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Blockyard's heap through its C interface (heap.h). Absent unless the native library is found.</summary>
    internal static unsafe class NativeHeap
    {
        private const string Library = "blockyard";

        private static readonly Lazy<bool> Present = new Lazy<bool>(Probe);

        internal static bool IsPresent => Present.Value;

        internal static byte* Allocate(long size, int alignment)
        {
            // by_malloc's blocks are aligned to 16 bytes.
            void* block = alignment <= 16
                ? by_malloc((UIntPtr)(ulong)size)
                : by_aligned_alloc((UIntPtr)(uint)alignment, (UIntPtr)(ulong)size);
            if (block == null)
            {
                throw new OutOfMemoryException("The native heap has no block of " + size + " bytes.");
            }

            return (byte*)block;
        }

        /// <summary>Makes a block larger that is aligned to at most 16 bytes.</summary>
        internal static byte* Reallocate(void* block, long size)
        {
            void* moved = by_realloc(block, (UIntPtr)(ulong)size);
            if (moved == null)
            {
                throw new OutOfMemoryException("The native heap has no block of " + size + " bytes.");
            }

            return (byte*)moved;
        }

        internal static void Free(void* block) => by_free(block);

        private static bool Probe()
        {
            try
            {
                return by_usable_size(null) == UIntPtr.Zero;
            }
            catch (TypeLoadException)
            {
                // The library or a function of it is not there.
                return false;
            }
            catch (BadImageFormatException)
            {
                return false;
            }
        }

        [DllImport(Library)]
        private static extern void* by_malloc(UIntPtr size);

        [DllImport(Library)]
        private static extern void* by_aligned_alloc(UIntPtr alignment, UIntPtr size);

        [DllImport(Library)]
        private static extern void* by_realloc(void* block, UIntPtr size);

        [DllImport(Library)]
        private static extern void by_free(void* block);

        [DllImport(Library)]
        private static extern UIntPtr by_usable_size(void* block);
    }
}
