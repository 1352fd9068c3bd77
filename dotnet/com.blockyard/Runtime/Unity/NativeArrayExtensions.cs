using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Shows Blockyard's memory as Unity's arrays.</summary>
    public static unsafe class NativeArrayExtensions
    {
        /// <summary>The items of an array.</summary>
        /// <param name="items">The array, which must live longer than the view.</param>
        /// <typeparam name="T">The type of the items.</typeparam>
        public static NativeArrayView<T> AsNativeArray<T>(this UnmanagedArray<T> items)
            where T : unmanaged => AsNativeArray(items.AsSpan());

        /// <summary>The items of a list. Do not add to it while the view is in use.</summary>
        /// <param name="items">The list, which must live longer than the view.</param>
        /// <typeparam name="T">The type of the items.</typeparam>
        public static NativeArrayView<T> AsNativeArray<T>(this UnmanagedList<T> items)
            where T : unmanaged => AsNativeArray(items.AsSpan());

        /// <summary>The items of a span in unmanaged memory, as <see cref="UnmanagedMemory.MallocSpan"/> and
        /// <see cref="UnmanagedAllocator{T}.AllocateSpan"/> give it.</summary>
        /// <param name="items">The span. The collector may move items of its own heap, so they must not be
        /// those.</param>
        /// <typeparam name="T">The type of the items.</typeparam>
        public static NativeArrayView<T> AsNativeArray<T>(this Span<T> items)
            where T : unmanaged
        {
            fixed (T* first = &MemoryMarshal.GetReference(items))
            {
                return new NativeArrayView<T>(first, items.Length);
            }
        }
    }
}
