using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>A growing list whose items never move, in chunks of equal length.</summary>
    /// <remarks>
    /// A small struct whose copies share the list; dispose only one of them. Adding is O(1) and makes one allocation
    /// per chunk. A <c>ref</c> to an item is valid until <see cref="Clear"/> or <see cref="Dispose"/>. Memory: whole
    /// chunks and 8 bytes per chunk (twice that while the table of chunks grows). The same checks as
    /// <see cref="UnmanagedList{T}"/>. One thread at a time.
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public unsafe struct UnmanagedChunkedList<T> : IDisposable
        where T : unmanaged
    {
        private Head* head;
        private readonly MemorySource source;
#if !BLOCKYARD_RELEASE
        private Safety safety;
#endif

        /// <summary>Creates an empty list.</summary>
        /// <param name="source">Where its memory comes from.</param>
        /// <param name="chunkLength">Items per chunk, rounded up to a power of two.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedChunkedList(MemorySource source, int chunkLength = 1024)
        {
            if (chunkLength < 1 || chunkLength > 1 << 30)
            {
                throw new ArgumentOutOfRangeException(nameof(chunkLength), chunkLength, "A chunk has 1 to 2^30 items.");
            }

            int shift = 0;
            while (1 << shift < chunkLength)
            {
                shift++;
            }

            this.source = source;
            head = (Head*)source.Allocate(sizeof(Head), sizeof(void*));
            *head = new Head { Shift = shift };
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

        /// <summary>Items per chunk.</summary>
        public readonly int ChunkLength
        {
            get
            {
                CheckLife();
                return 1 << head->Shift;
            }
        }

        /// <summary>The number of chunks that hold items.</summary>
        public readonly int ChunkCount
        {
            get
            {
                CheckLife();
                return (int)((head->Count + (1L << head->Shift) - 1) >> head->Shift);
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
                return ref head->Chunks[index >> head->Shift][index & ((1 << head->Shift) - 1)];
            }
        }

        /// <summary>Adds an item at the end and returns a reference to it.</summary>
        /// <param name="item">The item.</param>
        /// <exception cref="OutOfMemoryException">There is no memory for a chunk. The list is unchanged.</exception>
        public readonly ref T Add(T item)
        {
            T* at = Next();
            *at = item;
            return ref *at;
        }

        /// <summary>Adds a cleared item at the end and returns a reference to it, so that it can be filled without a
        /// copy.</summary>
        /// <exception cref="OutOfMemoryException">There is no memory for a chunk. The list is unchanged.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public readonly ref T Add()
        {
            T* at = Next();
            *at = default;
            return ref *at;
        }

        /// <summary>The items of one chunk, side by side.</summary>
        /// <param name="chunk">0 to <see cref="ChunkCount"/> - 1.</param>
        public readonly Span<T> GetChunk(int chunk)
        {
            CheckLife();
            Bounds.Check(chunk, ChunkCount);
            long before = (long)chunk << head->Shift;
            return new Span<T>(head->Chunks[chunk], (int)Math.Min(1L << head->Shift, head->Count - before));
        }

        /// <summary>Removes all items. Keeps the chunks.</summary>
        public readonly void Clear()
        {
            CheckLife();
            head->Count = 0;
            head->Next = null;
            head->End = null;
        }

        /// <summary>Enumerates the items.</summary>
        public readonly Enumerator GetEnumerator()
        {
            CheckLife();
            return new Enumerator(this);
        }

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
                for (int i = head->Chunked - 1; i >= 0; i--)
                {
                    source.Free(head->Chunks[i]);
                }

                source.Free(head->Chunks);
                source.Free(head);
                head = null;
            }
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private readonly T* Next()
        {
            CheckLife();
            Head* all = head;
            if (all->Next == all->End)
            {
                NextChunk();
            }

            T* at = all->Next;
            all->Next = at + 1;
            all->Count++;
            return at;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private readonly void NextChunk()
        {
            // The count must stay an int when the whole chunk is full.
            _ = checked(head->Count + (1 << head->Shift));
            int chunk = head->Count >> head->Shift;
            if (chunk == head->Chunked)
            {
                AddChunk();
            }

            head->Next = head->Chunks[chunk];
            head->End = head->Next + (1 << head->Shift);
        }

        private readonly void AddChunk()
        {
            if (head->Chunked == head->Room)
            {
                int room = Math.Max(4, head->Room * 2);
                T** table = (T**)source.Allocate((long)room * sizeof(T*), sizeof(void*));
                if (head->Chunks != null)
                {
                    RawMemory.Copy(head->Chunks, table, (long)head->Chunked * sizeof(T*));
                    source.Free(head->Chunks);
                }

                head->Chunks = table;
                head->Room = room;
            }

            long bytes = (long)sizeof(T) << head->Shift;
            head->Chunks[head->Chunked] = (T*)source.Allocate(bytes, RawMemory.AlignmentOf<T>());
            head->Chunked++;
        }

        private readonly void CheckLife()
        {
#if !BLOCKYARD_RELEASE
            safety.Check();
#endif
        }

        /// <summary>Enumerates the items in order.</summary>
        public struct Enumerator
        {
            private readonly UnmanagedChunkedList<T> list;
            private int index;

            internal Enumerator(UnmanagedChunkedList<T> list)
            {
                this.list = list;
                index = -1;
            }

            /// <summary>The current item.</summary>
            public readonly ref T Current => ref list[index];

            /// <summary>Moves to the next item.</summary>
            /// <returns>False after the last.</returns>
            public bool MoveNext() => ++index < list.Count;
        }

        private struct Head
        {
            /// <summary>Where the next item goes, and the end of its chunk. They are equal when a new chunk is
            /// needed.</summary>
            internal T* Next;
            internal T* End;
            internal T** Chunks;
            internal int Chunked;
            internal int Room;
            internal int Count;
            internal int Shift;
        }
    }
}
