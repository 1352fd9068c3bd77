using System;
using System.Diagnostics;

namespace Blockyard.Memory
{
    /// <summary>Hands out values of a wrapper type, each around a pointer to a cleared item in a large unmanaged block.</summary>
    /// <remarks>
    /// For a readonly struct that wraps a pointer and implements an interface over it. One call of the delegate an item
    /// is most of its cost: <see cref="UnmanagedAllocator{T}"/> has none. Bounds as there: O(1), no header, the runtime is
    /// asked for memory once a block. One thread at a time. A wrapper is valid until <see cref="Dispose"/>, which it can't
    /// know; but no memory is handed out after it.
    /// </remarks>
    /// <typeparam name="TWrapper">What the delegate makes of a pointer.</typeparam>
    public sealed unsafe class WrappedAllocator<TWrapper> : IDisposable
    {
        private readonly BlockStack memory;
        private readonly Func<IntPtr, TWrapper> wrapperCreator;
        private readonly StackTrace? madeAt = LeakDetection.CaptureStack();
        private readonly int typeSize;
        private long live;
        private bool disposed;

        /// <summary>An allocator that holds no memory until the first item.</summary>
        /// <param name="typeSize">Bytes an item, at least 1. Items lie that far apart and start at a multiple of 16, so a
        /// size that is a multiple of the type's alignment keeps every item aligned.</param>
        /// <param name="wrapperCreator">Makes a wrapper around the address of an item.</param>
        /// <param name="blockSize">Items a block, at least 1.</param>
        /// <exception cref="ArgumentOutOfRangeException">A size below 1.</exception>
        /// <exception cref="ArgumentNullException">No delegate.</exception>
        public WrappedAllocator(int typeSize, Func<IntPtr, TWrapper> wrapperCreator, int blockSize = 32768)
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
            memory = new BlockStack((long)typeSize * blockSize, 16);
        }

        /// <summary>Reports an allocator that nobody disposed of; the memory stays, since wrappers may still be in use.</summary>
        ~WrappedAllocator()
        {
            if (memory != null && memory.Count > 0 && !LeakDetection.IsOff)
            {
                LeakDetection.Report(
                    "a WrappedAllocator<" + typeof(TWrapper).Name + "> with " + live + " items in " + memory.BytesReserved
                    + " bytes was not disposed of"
                    + (madeAt == null ? "; LeakMode.OnWithStacks tells where it was made" : ", made at" + Environment.NewLine + madeAt));
            }
        }

        /// <summary>What is held and was done until now.</summary>
        public AllocatorStatistics Statistics => new AllocatorStatistics(
            disposed ? 0 : live, live, live, memory.Count, memory.BytesReserved, memory.BytesUsed, memory.BytesInHugePages, 0, 0);

        /// <summary>A wrapper around a further item, whose bytes are zero.</summary>
        /// <exception cref="OutOfMemoryException">The runtime has no further block; the allocator stays as it was.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public TWrapper Allocate()
        {
            byte* item = memory.Cursor;
            if ((long)memory.Limit - (long)item < typeSize)
            {
                if (disposed)
                {
                    throw new ObjectDisposedException(nameof(WrappedAllocator<TWrapper>));
                }

                item = memory.Take(typeSize, 1);
            }
            else
            {
                memory.Cursor = item + typeSize;
            }

            live++;
            new Span<byte>(item, typeSize).Clear();
            return wrapperCreator((IntPtr)item);
        }

        /// <summary>Gives all memory back to the runtime. A second call does nothing.</summary>
        public void Dispose()
        {
            if (!disposed)
            {
                disposed = true;
                GC.SuppressFinalize(this);
                memory.FreeAll();
            }
        }
    }
}
