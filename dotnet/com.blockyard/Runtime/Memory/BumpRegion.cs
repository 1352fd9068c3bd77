using System;
using System.Runtime.CompilerServices;
#if UNITY_5_3_OR_NEWER
using Unity.Collections.LowLevel.Unsafe;
#endif

namespace Blockyard.Memory
{
    /// <summary>Allocates from a block that somebody else owns by bumping a pointer: memory inside of a Burst
    /// job.</summary>
    /// <remarks>
    /// <para>Two pointers and nothing else: no managed type, static field or call of the runtime, so Burst can compile
    /// every member. O(1), no header, no growth. A copy of the struct has its own cursor, so pass it by reference. It
    /// does not own the block: free that after the last use, for instance a TempJob block after the job. One thread at
    /// a time.</para>
    /// </remarks>
    public unsafe struct BumpRegion
    {
#if UNITY_5_3_OR_NEWER
        // Else Unity's job debugger refuses jobs with such a field.
        [NativeDisableUnsafePtrRestriction]
#endif
        private byte* cursor;
#if UNITY_5_3_OR_NEWER
        [NativeDisableUnsafePtrRestriction]
#endif
        private byte* end;

        /// <summary>Begins at the start of a block.</summary>
        /// <param name="block">The block; null with a size of 0 gives a region that is full.</param>
        /// <param name="size">Its bytes.</param>
        public BumpRegion(void* block, long size)
        {
            cursor = (byte*)block;
            end = (byte*)block + size;
        }

        /// <summary>Bytes that are left, before alignment.</summary>
        public readonly long BytesLeft => (long)end - (long)cursor;

        /// <summary>Takes a block of unspecified contents.</summary>
        /// <param name="size">Bytes, 0 or more.</param>
        /// <param name="alignment">A power of two; not checked.</param>
        /// <returns>Null, without any change, when the region has no room.</returns>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void* TryAllocate(long size, int alignment)
        {
            ulong mask = (uint)alignment - 1UL;
            ulong start = ((ulong)cursor + mask) & ~mask;
            if (start > (ulong)end || (ulong)size > (ulong)end - start)
            {
                return null;
            }

            cursor = (byte*)start + size;
            return (void*)start;
        }

        /// <summary>Takes items of unspecified contents, aligned to 16 bytes.</summary>
        /// <param name="count">The number of items, 0 or more.</param>
        /// <typeparam name="T">The type of the items.</typeparam>
        /// <returns>A null pointer, without any change, when the region has no room.</returns>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public Ptr<T> TryAllocate<T>(int count)
            where T : unmanaged => new Ptr<T>((T*)TryAllocate((long)count * sizeof(T), 16));
    }
}
