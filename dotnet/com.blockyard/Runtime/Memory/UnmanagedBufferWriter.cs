using System;
using System.Buffers;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>A growing buffer in unmanaged memory that serializers write into without a copy.</summary>
    /// <remarks>
    /// <para>The counterpart of <see cref="ArrayBufferWriter{T}"/>. Advancing is O(1), growth is amortised. What
    /// <see cref="GetSpan"/> and <see cref="GetMemory"/> return is valid until the next call of either, and what was
    /// written until the writer grows. Its three objects on the collected heap are made once:
    /// <see cref="Restart"/> makes no garbage. After <c>Dispose</c> it throws until it is restarted. One thread
    /// at a time.</para>
    /// </remarks>
    /// <typeparam name="T">The type of the items, mostly <see cref="byte"/>.</typeparam>
    public sealed unsafe class UnmanagedBufferWriter<T> : IBufferWriter<T>, IDisposable
        where T : unmanaged
    {
        private const int SmallestRoom = 256;
        private readonly Window window;
        private UnmanagedList<T> list;
        private MemorySource source;

        /// <summary>Creates an empty writer.</summary>
        /// <param name="capacity">The number of items it holds before it grows.</param>
        /// <param name="source">Where its memory comes from. For <see cref="Lifetime.Temp"/> call
        /// <see cref="Restart"/> in every frame.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedBufferWriter(int capacity, MemorySource source)
        {
            window = new Window(this);
            this.source = source;
            list = new UnmanagedList<T>(capacity, source);
        }

        /// <summary>The number of items that were written.</summary>
        public int WrittenCount => List.Count;

        /// <summary>What was written; valid until the writer grows.</summary>
        public ReadOnlySpan<T> WrittenSpan => List.AsSpan();

        /// <summary>What was written. It stays valid when the writer grows, until it is restarted or
        /// disposed.</summary>
        public ReadOnlyMemory<T> WrittenMemory => window.Slice(0, List.Count);

        /// <summary>The number of items it holds before it grows.</summary>
        public int Capacity => List.Capacity;

        /// <inheritdoc/>
        public void Advance(int count) => List.Advance(count);

        /// <inheritdoc/>
        public Span<T> GetSpan(int sizeHint = 0)
        {
            MakeRoom(sizeHint);
            return list.Unused;
        }

        /// <inheritdoc/>
        public Memory<T> GetMemory(int sizeHint = 0)
        {
            MakeRoom(sizeHint);
            return window.Slice(list.Count, list.Capacity - list.Count);
        }

        /// <summary>Forgets what was written. Keeps the memory.</summary>
        public void Clear() => List.Clear();

        /// <summary>Starts again with new memory from the same source, without garbage: for Temp, whose memory ends
        /// with the frame.</summary>
        /// <param name="capacity">The number of items it holds before it grows.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public void Restart(int capacity)
        {
            UnmanagedList<T> fresh = new UnmanagedList<T>(capacity, source);
            Dispose();
            list = fresh;
        }

        /// <summary>Frees the memory. A second call does nothing.</summary>
        public void Dispose()
        {
            // Memory in Temp or in an allocator may be gone already, and ends by itself.
            if (!source.EndsByItself)
            {
                list.Dispose();
            }

            list = default;
        }

        /// <exception cref="ObjectDisposedException">It was disposed.</exception>
        private ref UnmanagedList<T> List
        {
            get
            {
                if (!list.IsCreated)
                {
                    throw new ObjectDisposedException(nameof(UnmanagedBufferWriter<T>));
                }

                return ref list;
            }
        }

        private void MakeRoom(int sizeHint)
        {
            Bounds.CheckCount(sizeHint, nameof(sizeHint));
            int wanted = Math.Max(1, sizeHint);
            if (List.Capacity - list.Count < wanted)
            {
                int needed = unchecked(list.Count + Math.Max(wanted, SmallestRoom));
                list.EnsureCapacity(Bounds.Grown(list.Capacity, needed));
            }
        }

        /// <summary>Makes <see cref="Memory{T}"/> of the writer's memory, wherever it is now.</summary>
        private sealed class Window : MemoryManager<T>
        {
            private readonly UnmanagedBufferWriter<T> writer;

            internal Window(UnmanagedBufferWriter<T> writer)
            {
                this.writer = writer;
            }

            public override Span<T> GetSpan() => writer.List.All;

            public override MemoryHandle Pin(int elementIndex = 0)
            {
                fixed (T* first = &MemoryMarshal.GetReference(GetSpan().Slice(elementIndex)))
                {
                    return new MemoryHandle(first);
                }
            }

            public override void Unpin()
            {
            }

            internal Memory<T> Slice(int start, int length) => CreateMemory(start, length);

            protected override void Dispose(bool disposing)
            {
            }
        }
    }
}
