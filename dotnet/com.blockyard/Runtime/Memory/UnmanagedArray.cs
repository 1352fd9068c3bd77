using System;

namespace Blockyard.Memory
{
    /// <summary>An array of fixed length in unmanaged memory.</summary>
    /// <remarks>
    /// A small struct whose copies share the items; dispose only one of them. Creation makes one allocation; access
    /// costs as much as through a pointer. <see cref="Checks"/> catch an index out of range and use after the memory is
    /// gone. Threads may share it like an ordinary array.
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public unsafe struct UnmanagedArray<T> : IDisposable
        where T : unmanaged
    {
        private ContainerMemory memory;
        private readonly int length;

        /// <summary>Creates an array.</summary>
        /// <param name="length">The number of items, 0 or more.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <param name="zeroed">Whether to set the items to zero.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedArray(int length, MemorySource source, bool zeroed = true)
        {
            Bounds.CheckCount(length, nameof(length));
            this.length = length;
            long bytes = (long)length * sizeof(T);
            memory = default;
            memory.Create(Math.Max(1, bytes), RawMemory.AlignmentOf<T>(), source);
            if (zeroed)
            {
                RawMemory.Clear(memory.Block, bytes);
            }
        }

        /// <summary>Creates a cleared array of <see cref="Lifetime.Persistent"/>.</summary>
        /// <param name="length">The number of items, 0 or more.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedArray(int length)
            : this(length, Lifetime.Persistent)
        {
        }

        /// <summary>Creates a copy of some items.</summary>
        /// <param name="items">The items to copy.</param>
        /// <param name="source">Where the array's memory comes from.</param>
        public UnmanagedArray(ReadOnlySpan<T> items, MemorySource source)
            : this(items.Length, source, zeroed: false)
        {
            items.CopyTo(AsSpan());
        }

        /// <summary>Whether it has memory: it was created, and this copy was not disposed.</summary>
        public readonly bool IsCreated => memory.IsCreated;

        /// <summary>The number of items.</summary>
        public readonly int Length => length;

        /// <summary>One item.</summary>
        /// <param name="index">0 to <see cref="Length"/> - 1.</param>
        public readonly ref T this[int index]
        {
            get
            {
                T* items = (T*)memory.Block;
                Bounds.Check(index, length);
                return ref items[index];
            }
        }

        /// <summary>All items.</summary>
        public readonly Span<T> AsSpan() => new Span<T>(memory.Block, length);

        /// <summary>Copies the items into an array of the collected heap.</summary>
        public readonly T[] ToArray() => AsSpan().ToArray();

        /// <summary>Copies the items.</summary>
        /// <param name="destination">At least <see cref="Length"/> items.</param>
        /// <exception cref="ArgumentException">It is too short. Nothing was copied.</exception>
        public readonly void CopyTo(Span<T> destination) => AsSpan().CopyTo(destination);

        /// <summary>Enumerates the items.</summary>
        public readonly Span<T>.Enumerator GetEnumerator() => AsSpan().GetEnumerator();

        /// <summary>Frees the memory. A second call on the same variable does nothing; with checks it throws on a
        /// copy.</summary>
        public void Dispose()
        {
            if (memory.IsCreated)
            {
                memory.End();
            }
        }
    }
}
