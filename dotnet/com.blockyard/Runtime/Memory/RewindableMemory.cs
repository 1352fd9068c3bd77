using System;

namespace Blockyard.Memory
{
    /// <summary>Blocks of any size that are freed together: what Unity 6 calls a RewindableAllocator.</summary>
    /// <remarks>
    /// <para>Bounds: O(1), no header. It calls the runtime once per <c>blockSize</c> bytes; a larger request gets its
    /// own block. <see cref="Rewind"/> keeps the memory, so the steady state calls nothing and makes no garbage.</para>
    /// <para>Any thread may allocate; an allocation takes a lock. Nobody may use a block after the rewind, which must
    /// not run beside an allocation that shall survive it.</para>
    /// </remarks>
    public sealed unsafe class RewindableMemory : IDisposable
    {
        private readonly object gate = new object();
        private readonly UnmanagedAllocator<byte> memory;

        /// <summary>Creates an allocator. It holds no memory before the first block.</summary>
        /// <param name="blockSize">Bytes to get from the runtime at once, at least 1.</param>
        /// <exception cref="ArgumentOutOfRangeException">A size below 1.</exception>
        public RewindableMemory(int blockSize = 128 * 1024)
        {
            if (blockSize < 1)
            {
                throw new ArgumentOutOfRangeException(nameof(blockSize), blockSize, "A block has at least one byte.");
            }

            // An item takes as many bytes as its alignment.
            int alignment = RawMemory.NaturalAlignment;
            memory = new UnmanagedAllocator<byte>(((blockSize - 1) / alignment) + 1, alignment, gate);
        }

        /// <summary>As the source of containers' memory.</summary>
        public MemorySource Source => memory.Source;

        /// <summary>A snapshot of what it holds, in blocks of memory and bytes.</summary>
        public AllocatorStatistics Statistics
        {
            get
            {
                lock (gate)
                {
                    return memory.Statistics;
                }
            }
        }

        /// <summary>Allocates a block of unspecified contents.</summary>
        /// <param name="size">Bytes, 0 or more.</param>
        /// <param name="alignment">A power of two up to <see cref="UnmanagedMemory.LargestAlignment"/>.</param>
        /// <exception cref="ArgumentOutOfRangeException">A negative size or an invalid alignment.</exception>
        /// <exception cref="OutOfMemoryException">There is not enough memory. Nothing has changed.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public void* Malloc(long size, int alignment) =>
            memory.TakeBytes(RawMemory.CheckedSize(size, alignment), alignment);

        /// <summary>Allocates items of unspecified contents, for code that is not <c>unsafe</c>.</summary>
        /// <param name="count">The number of items, 0 or more.</param>
        /// <typeparam name="T">The type of the items, which are aligned for it.</typeparam>
        /// <inheritdoc cref="Malloc" path="/exception"/>
        public Span<T> MallocSpan<T>(int count)
            where T : unmanaged
        {
            Bounds.CheckCount(count, nameof(count));
            return new Span<T>(Malloc((long)count * sizeof(T), RawMemory.AlignmentOf<T>()), count);
        }

        /// <summary>Frees all blocks and keeps their memory for the next ones. O(blocks of memory).</summary>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public void Rewind()
        {
            lock (gate)
            {
                memory.Reset();
            }
        }

        /// <summary>Frees all memory. A second call does nothing.</summary>
        public void Dispose()
        {
            lock (gate)
            {
                memory.Dispose();
            }
        }
    }
}
