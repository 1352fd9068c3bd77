using System;

namespace Blockyard.Memory
{
    /// <summary>A growing list in unmanaged memory.</summary>
    /// <remarks>
    /// A small struct whose copies share the list; dispose only one of them. Adding is amortised O(1). Growth moves the
    /// items, so a <c>ref</c> or span is valid until the next addition; use <see cref="UnmanagedChunkedList{T}"/> where
    /// items must not move. Memory: the capacity's items and 16 bytes. In an allocator, outgrown memory stays until the
    /// reset. Checked builds catch an index out of range and use after the memory is gone; <c>BLOCKYARD_RELEASE</c>
    /// removes the checks. One thread at a time.
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public unsafe struct UnmanagedList<T> : IDisposable
        where T : unmanaged
    {
        private Head* head;
        private readonly MemorySource source;
#if !BLOCKYARD_RELEASE
        private Safety safety;
#endif

        /// <summary>Creates an empty list.</summary>
        /// <param name="capacity">The number of items it holds before it grows.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedList(int capacity, MemorySource source)
        {
            Bounds.CheckCount(capacity, nameof(capacity));
            this.source = source;
            head = (Head*)source.Allocate(sizeof(Head), sizeof(void*));
            *head = default;
#if !BLOCKYARD_RELEASE
            safety = default;
#endif
            try
            {
                if (capacity > 0)
                {
                    SetCapacity(capacity);
                }
            }
            catch
            {
                source.Free(head);
                throw;
            }
#if !BLOCKYARD_RELEASE
            safety = new Safety(source);
#endif
        }

        /// <summary>Whether it has memory: it was created, and this copy was not disposed.</summary>
        public readonly bool IsCreated => head != null;

        /// <summary>The number of items.</summary>
        public readonly int Count
        {
            get
            {
                CheckLife();
                return head->Count;
            }
        }

        /// <summary>The number of items it holds before it grows.</summary>
        public readonly int Capacity
        {
            get
            {
                CheckLife();
                return head->Capacity;
            }
        }

        /// <summary>One item.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly ref T this[int index]
        {
            get
            {
                CheckLife();
                Bounds.Check(index, head->Count);
                return ref head->Items[index];
            }
        }

        /// <summary>Adds an item at the end.</summary>
        /// <param name="item">The item.</param>
        /// <exception cref="OutOfMemoryException">There is no memory to grow. The list is unchanged.</exception>
        public readonly void Add(T item)
        {
            CheckLife();
            int count = head->Count;
            if (count == head->Capacity)
            {
                SetCapacity(Bounds.Grown(count, unchecked(count + 1)));
            }

            head->Items[count] = item;
            head->Count = count + 1;
        }

        /// <summary>Adds several items at the end. They may be items of this list.</summary>
        /// <param name="items">The items.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void AddRange(ReadOnlySpan<T> items)
        {
            CheckLife();
            int count = head->Count;
            int needed = unchecked(count + items.Length);
            if (needed < 0 || needed > head->Capacity)
            {
                // Frees the old memory after the copy, because `items` may lie in it.
                T* old = Replace(Bounds.Grown(head->Capacity, needed));
                items.CopyTo(new Span<T>(head->Items + count, items.Length));
                source.Free(old);
            }
            else
            {
                items.CopyTo(new Span<T>(head->Items + count, items.Length));
            }

            head->Count = needed;
        }

        /// <summary>Inserts an item. Those after it move up.</summary>
        /// <param name="index">0 to <see cref="Count"/>.</param>
        /// <param name="item">The item.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void Insert(int index, T item)
        {
            CheckLife();
            Bounds.Check(index, head->Count + 1);
            Add(item);

            // A loop, because Mono's Buffer.MemoryCopy does not always handle overlapping memory.
            T* at = head->Items + index;
            for (T* to = head->Items + head->Count - 1; to > at; to--)
            {
                *to = to[-1];
            }

            *at = item;
        }

        /// <summary>Removes an item. Those after it move down.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly void RemoveAt(int index)
        {
            CheckLife();
            Bounds.Check(index, head->Count);
            head->Count--;
            T* end = head->Items + head->Count;
            for (T* to = head->Items + index; to < end; to++)
            {
                *to = to[1];
            }
        }

        /// <summary>Removes an item in O(1) by moving the last item into its place.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly void RemoveAtSwapBack(int index)
        {
            CheckLife();
            Bounds.Check(index, head->Count);
            head->Items[index] = head->Items[--head->Count];
        }

        /// <summary>Removes all items. Keeps the memory.</summary>
        public readonly void Clear()
        {
            CheckLife();
            head->Count = 0;
        }

        /// <summary>Makes room for a number of items. Adding up to that number moves nothing.</summary>
        /// <param name="capacity">The total number of items.</param>
        /// <inheritdoc cref="Add" path="/exception"/>
        public readonly void EnsureCapacity(int capacity)
        {
            CheckLife();
            if (capacity > head->Capacity)
            {
                SetCapacity(capacity);
            }
        }

        /// <summary>All items; valid until the next addition.</summary>
        public readonly Span<T> AsSpan()
        {
            CheckLife();
            return new Span<T>(head->Items, head->Count);
        }

        /// <summary>Enumerates the items.</summary>
        public readonly Span<T>.Enumerator GetEnumerator() => AsSpan().GetEnumerator();

        /// <summary>Frees the memory. A second call on the same variable does nothing; on a copy it throws in checked
        /// builds.</summary>
        public void Dispose()
        {
            if (head != null)
            {
#if !BLOCKYARD_RELEASE
                safety.End();
                safety = default;
#endif
                source.Free(head->Items);
                source.Free(head);
                head = null;
            }
        }

        private readonly void SetCapacity(int capacity) => source.Free(Replace(capacity));

        /// <summary>Moves the items into new memory and returns the old memory.</summary>
        private readonly T* Replace(int capacity)
        {
            T* fresh = (T*)source.Allocate((long)capacity * sizeof(T), RawMemory.AlignmentOf<T>());
            T* old = head->Items;
            if (old != null)
            {
                RawMemory.Copy(old, fresh, (long)head->Count * sizeof(T));
            }

            head->Items = fresh;
            head->Capacity = capacity;
            return old;
        }

        private readonly void CheckLife()
        {
#if !BLOCKYARD_RELEASE
            safety.Check();
#endif
        }

        private struct Head
        {
            internal T* Items;
            internal int Count;
            internal int Capacity;
        }
    }
}
