using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>A growing list in unmanaged memory.</summary>
    /// <remarks>
    /// A small struct whose copies share the list; dispose only one of them. Adding is amortised O(1). Growth moves the
    /// items, so a <c>ref</c> or span is valid until the next addition; use <see cref="UnmanagedChunkedList{T}"/> where
    /// items must not move. Memory: the capacity's items and 16 bytes. In an allocator, outgrown memory stays until the
    /// reset. <see cref="Checks"/> catch an index out of range and use after the memory is gone. One thread at a time.
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public unsafe struct UnmanagedList<T> : IDisposable
        where T : unmanaged
    {
        private ContainerMemory memory;

        /// <summary>Creates an empty list.</summary>
        /// <param name="capacity">The number of items it holds before it grows.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedList(int capacity, MemorySource source)
        {
            Bounds.CheckCount(capacity, nameof(capacity));
            memory = default;
            memory.Create<Head>(source);
            try
            {
                EnsureCapacity(capacity);
            }
            catch
            {
                memory.End();
                throw;
            }
        }

        /// <summary>Creates an empty list of <see cref="Lifetime.Persistent"/>.</summary>
        /// <param name="capacity">The number of items it holds before it grows.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedList(int capacity)
            : this(capacity, Lifetime.Persistent)
        {
        }

        /// <summary>Creates a list with copies of some items.</summary>
        /// <param name="items">The items to copy.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedList(ReadOnlySpan<T> items, MemorySource source)
            : this(items.Length, source)
        {
            AddRange(items);
        }

        /// <summary>Whether it has memory: it was created, and this copy was not disposed.</summary>
        public readonly bool IsCreated => memory.IsCreated;

        /// <summary>The number of items.</summary>
        public readonly int Count => Shared->Count;

        /// <summary>The number of items it holds before it grows.</summary>
        public readonly int Capacity => Shared->Capacity;

        /// <summary>One item.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly ref T this[int index]
        {
            get
            {
                Head* shared = Shared;
                Bounds.Check(index, shared->Count);
                return ref shared->Items[index];
            }
        }

        /// <summary>Adds an item at the end.</summary>
        /// <param name="item">The item.</param>
        /// <exception cref="OutOfMemoryException">There is no memory to grow. The list is unchanged.</exception>
        public readonly void Add(T item)
        {
            memory.Change();
            Head* shared = Shared;
            int count = shared->Count;
            if (count == shared->Capacity)
            {
                SetCapacity(Bounds.Grown(count, unchecked(count + 1)));
            }

            shared->Items[count] = item;
            shared->Count = count + 1;
        }

        /// <summary>Adds several items at the end. They may be items of this list.</summary>
        /// <param name="items">The items.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void AddRange(ReadOnlySpan<T> items)
        {
            memory.Change();
            Head* shared = Shared;
            int count = shared->Count;
            int needed = unchecked(count + items.Length);
            if (needed < 0 || needed > shared->Capacity)
            {
                // The items may lie in the list's own memory, which moves.
                long offset;
                fixed (T* first = &MemoryMarshal.GetReference(items))
                {
                    offset = (byte*)first - (byte*)shared->Items;
                }

                bool isOwn = (ulong)offset < (ulong)count * (ulong)sizeof(T);
                SetCapacity(Bounds.Grown(shared->Capacity, needed));
                if (isOwn)
                {
                    items = new ReadOnlySpan<T>((byte*)shared->Items + offset, items.Length);
                }
            }

            items.CopyTo(new Span<T>(shared->Items + count, items.Length));
            shared->Count = needed;
        }

        /// <summary>Inserts an item. Those after it move up.</summary>
        /// <param name="index">0 to <see cref="Count"/>.</param>
        /// <param name="item">The item.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void Insert(int index, T item) => InsertRange(index, new ReadOnlySpan<T>(&item, 1));

        /// <summary>Inserts several items. Those after them move up.</summary>
        /// <param name="index">0 to <see cref="Count"/>.</param>
        /// <param name="items">The items, which must not be items of this list.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void InsertRange(int index, ReadOnlySpan<T> items)
        {
            Head* shared = Shared;
            int count = shared->Count;
            Bounds.Check(index, count + 1);
            AddRange(items);

            // A loop, because Mono's Buffer.MemoryCopy does not always handle overlapping memory.
            T* at = shared->Items + index;
            T* from = shared->Items + count;
            for (T* to = from + items.Length; from > at;)
            {
                *--to = *--from;
            }

            items.CopyTo(new Span<T>(at, items.Length));
        }

        /// <summary>Changes the number of items. New ones are cleared.</summary>
        /// <param name="count">The number, 0 or more.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void Resize(int count)
        {
            EnsureCapacity(count);
            memory.Change();
            Head* shared = Shared;
            if (count > shared->Count)
            {
                new Span<T>(shared->Items + shared->Count, count - shared->Count).Clear();
            }

            shared->Count = count;
        }

        /// <summary>Removes an item. Those after it move down.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly void RemoveAt(int index)
        {
            memory.Change();
            Head* shared = Shared;
            Bounds.Check(index, shared->Count);
            shared->Count--;
            T* end = shared->Items + shared->Count;
            for (T* to = shared->Items + index; to < end; to++)
            {
                *to = to[1];
            }
        }

        /// <summary>Removes an item in O(1) by moving the last item into its place.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly void RemoveAtSwapBack(int index)
        {
            memory.Change();
            Head* shared = Shared;
            Bounds.Check(index, shared->Count);
            shared->Items[index] = shared->Items[--shared->Count];
        }

        /// <summary>Removes all items. Keeps the memory.</summary>
        public readonly void Clear()
        {
            memory.Change();
            Shared->Count = 0;
        }

        /// <summary>Makes room for a number of items. Adding up to that number moves nothing.</summary>
        /// <param name="capacity">The total number of items.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void EnsureCapacity(int capacity)
        {
            Bounds.CheckCount(capacity, nameof(capacity));
            if (capacity > Shared->Capacity)
            {
                SetCapacity(capacity);
            }
        }

        /// <summary>Shared items; valid until the next addition.</summary>
        public readonly Span<T> AsSpan()
        {
            Head* shared = Shared;
            return new Span<T>(shared->Items, shared->Count);
        }

        /// <summary>Copies the items into an array of the collected heap.</summary>
        public readonly T[] ToArray() => AsSpan().ToArray();

        /// <summary>Copies the items.</summary>
        /// <param name="destination">At least <see cref="Count"/> items.</param>
        /// <exception cref="ArgumentException">It is too short. Nothing was copied.</exception>
        public readonly void CopyTo(Span<T> destination) => AsSpan().CopyTo(destination);

        /// <summary>Enumerates the items. None may be added or removed; checks catch that.</summary>
        public readonly Enumerator GetEnumerator() => new Enumerator(memory);

        /// <summary>Frees the memory. A second call on the same variable does nothing; with checks it throws on a
        /// copy.</summary>
        public void Dispose()
        {
            if (memory.IsCreated)
            {
                memory.Free(Shared->Items);
                memory.End();
            }
        }

        /// <summary>The capacity's items, and those of them behind the last item. Contents that were never written are
        /// unspecified.</summary>
        internal readonly Span<T> All => new Span<T>(Shared->Items, Shared->Capacity);

        internal readonly Span<T> Unused => All.Slice(Shared->Count);

        private readonly Head* Shared => (Head*)memory.Block;

        /// <summary>Makes the first of the <see cref="Unused"/> items part of the list.</summary>
        internal readonly void Advance(int count)
        {
            Head* shared = Shared;
            if (count < 0 || count > shared->Capacity - shared->Count)
            {
                throw new ArgumentOutOfRangeException(
                    nameof(count), count, "There is room for " + (shared->Capacity - shared->Count) + " items.");
            }

            shared->Count += count;
        }

        private readonly void SetCapacity(int capacity)
        {
            memory.Change();
            Head* shared = Shared;
            shared->Items = (T*)memory.Resize(
                shared->Items, (long)shared->Count * sizeof(T), (long)capacity * sizeof(T), RawMemory.AlignmentOf<T>());
            shared->Capacity = capacity;
            memory.Keep();
        }

        /// <summary>Enumerates the items.</summary>
        public struct Enumerator
        {
            private readonly ContainerMemory memory;
            private readonly uint changes;
            private readonly T* end;
            private T* item;

            internal Enumerator(ContainerMemory memory)
            {
                Head* shared = (Head*)memory.Block;
                this.memory = memory;
                changes = memory.Changes;
                end = shared->Items + shared->Count;
                item = shared->Items - 1;
            }

            /// <summary>The current item.</summary>
            public readonly ref T Current
            {
                [MethodImpl(MethodImplOptions.AggressiveInlining)]
                get => ref *item;
            }

            /// <summary>Moves to the next item.</summary>
            /// <returns>False after the last.</returns>
            /// <exception cref="InvalidOperationException">With checks: an item was added or removed.</exception>
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public bool MoveNext()
            {
                memory.CheckUnchanged(changes);
                return ++item < end;
            }
        }

        private struct Head
        {
            internal T* Items;
            internal int Count;
            internal int Capacity;
        }
    }
}
