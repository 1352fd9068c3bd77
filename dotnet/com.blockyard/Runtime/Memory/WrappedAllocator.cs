using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Allocates items in large unmanaged blocks and returns a wrapper around the pointer to
    /// each.</summary>
    /// <remarks>
    /// For a readonly struct that wraps a pointer and implements an interface over it. Most of the cost of an item is
    /// the call of the delegate; <see cref="UnmanagedAllocator{T}"/> has none. Bounds: O(1), no header, one call of the
    /// runtime per block. One thread at a time. A wrapper is valid until <see cref="Dispose"/>; use after that is not
    /// checked.
    /// </remarks>
    /// <typeparam name="TWrapper">The type that the delegate makes from a pointer.</typeparam>
    public sealed unsafe class WrappedAllocator<TWrapper> : IDisposable
    {
        private readonly BlockStack memory;
        private readonly Func<IntPtr, TWrapper> wrapperCreator;
        private readonly StackTrace? madeAt = LeakDetection.CaptureStack();
        private readonly int typeSize;

        /// <summary>The next item, and the end of those that are ready. Behind it is the rest of the block.</summary>
        private byte* next;
        private byte* end;
        private long live;
        private bool disposed;

        /// <summary>Creates an allocator. It holds no memory before the first item.</summary>
        /// <param name="typeSize">Bytes per item, at least 1. Items lie that far apart and blocks start at a multiple
        /// of 16, so a size that is a multiple of the type's alignment keeps every item aligned.</param>
        /// <param name="wrapperCreator">Makes a wrapper from the address of an item.</param>
        /// <param name="blockSize">Items per block, at least 1.</param>
        /// <param name="zeroed">Whether new items are zero, as for <see cref="UnmanagedAllocator{T}"/>.</param>
        /// <exception cref="ArgumentOutOfRangeException">A size below 1.</exception>
        /// <exception cref="ArgumentNullException">No delegate.</exception>
        public WrappedAllocator(
            int typeSize, Func<IntPtr, TWrapper> wrapperCreator, int blockSize = 32768, bool zeroed = true)
        {
            if (typeSize < 1 || blockSize < 1 || wrapperCreator == null)
            {
                GC.SuppressFinalize(this);
                throw typeSize < 1
                    ? new ArgumentOutOfRangeException(nameof(typeSize), typeSize, "An item has at least one byte.")
                    : blockSize < 1
                    ? new ArgumentOutOfRangeException(nameof(blockSize), blockSize, "A block holds at least one item.")
                    : new ArgumentNullException(nameof(wrapperCreator));
            }

            this.typeSize = typeSize;
            this.wrapperCreator = wrapperCreator;
            memory = new BlockStack((long)typeSize * blockSize, 16, zeroed);
        }

        /// <summary>Reports an allocator that was not disposed. It does not free the memory, because wrappers may still
        /// be in use.</summary>
        ~WrappedAllocator()
        {
            if (memory != null && memory.Count > 0 && !LeakDetection.IsOff)
            {
                LeakDetection.ReportUndisposed(
                    "a WrappedAllocator<" + typeof(TWrapper).Name + ">", live, memory.BytesReserved, madeAt);
            }
        }

        /// <summary>A snapshot of what the allocator holds and has done.</summary>
        public AllocatorStatistics Statistics => new AllocatorStatistics(
            disposed ? 0 : live, live, live, memory.Count, memory.BytesReserved, memory.BytesUsed - (end - next),
            memory.BytesInHugePages, 0, 0);

        /// <summary>Allocates an item and returns a wrapper around it.</summary>
        /// <exception cref="OutOfMemoryException">The runtime has no memory for another block. The allocator is
        /// unchanged.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public TWrapper Allocate()
        {
            byte* item = next;
            if (item == end)
            {
                item = MakeReady();
            }

            next = item + typeSize;
            TWrapper wrapper = wrapperCreator((IntPtr)item);
            live++;
            return wrapper;
        }

        /// <summary>Frees all memory. A second call does nothing.</summary>
        public void Dispose()
        {
            if (!disposed)
            {
                disposed = true;
                GC.SuppressFinalize(this);
                memory.FreeAll();
                next = end = null;
            }
        }

        /// <summary>Makes the rest of a block ready: all of it if it is zero or need not be, else a page of
        /// it.</summary>
        /// <returns>Its first item.</returns>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private byte* MakeReady()
        {
            if (disposed)
            {
                throw new ObjectDisposedException(nameof(WrappedAllocator<TWrapper>));
            }

            byte* first = memory.Take(typeSize, 1);
            long rest = memory.Limit - first;
            if (first < memory.DirtyEnd)
            {
                rest = Math.Min(rest, Math.Max(1, SlabMemory.SmallPage / typeSize) * typeSize);
                memory.Clear(first, rest);
            }

            memory.Cursor = first + rest;
            next = first;
            end = memory.Cursor;
            return first;
        }
    }
}
