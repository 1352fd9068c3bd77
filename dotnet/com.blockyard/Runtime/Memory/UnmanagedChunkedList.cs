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
        private ContainerMemory memory;

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

            memory = default;
            memory.Create<Head>(source);
            Shared->Shift = shift;
        }

        /// <summary>Whether it has memory: it was created, and this copy was not disposed.</summary>
        public readonly bool IsCreated => memory.IsCreated;

        /// <summary>The number of items.</summary>
        public readonly int Count => Shared->Count;

        /// <summary>Items per chunk.</summary>
        public readonly int ChunkLength => 1 << Shared->Shift;

        /// <summary>The number of chunks that hold items.</summary>
        public readonly int ChunkCount
        {
            get
            {
                Head* shared = Shared;
                return (int)((shared->Count + (1L << shared->Shift) - 1) >> shared->Shift);
            }
        }

        /// <summary>One item.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public readonly ref T this[int index]
        {
            get
            {
                Head* shared = Shared;
                Bounds.Check(index, shared->Count);
                return ref shared->Chunks[index >> shared->Shift][index & ((1 << shared->Shift) - 1)];
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

        /// <summary>Adds copies of several items at the end.</summary>
        /// <param name="items">The items.</param>
        /// <exception cref="OutOfMemoryException">There is no memory for a chunk. The list holds those that were
        /// added.</exception>
        public readonly void AddRange(ReadOnlySpan<T> items)
        {
            Head* shared = Shared;
            while (items.Length > 0)
            {
                if (shared->Next == shared->End)
                {
                    NextChunk();
                }

                int part = (int)Math.Min(items.Length, shared->End - shared->Next);
                items.Slice(0, part).CopyTo(new Span<T>(shared->Next, part));
                shared->Next += part;
                shared->Count += part;
                items = items.Slice(part);
            }
        }

        /// <summary>Copies the items.</summary>
        /// <param name="destination">At least <see cref="Count"/> items.</param>
        /// <exception cref="ArgumentException">It is too short. Nothing was copied.</exception>
        public readonly void CopyTo(Span<T> destination)
        {
            if (destination.Length < Count)
            {
                throw new ArgumentException("The destination is too short.", nameof(destination));
            }

            for (int chunk = 0; chunk < ChunkCount; chunk++)
            {
                Span<T> items = GetChunk(chunk);
                items.CopyTo(destination);
                destination = destination.Slice(items.Length);
            }
        }

        /// <summary>Copies the items into an array of the collected heap.</summary>
        public readonly T[] ToArray()
        {
            T[] items = new T[Count];
            CopyTo(items);
            return items;
        }

        /// <summary>The items of one chunk, side by side.</summary>
        /// <param name="chunk">0 to <see cref="ChunkCount"/> - 1.</param>
        public readonly Span<T> GetChunk(int chunk)
        {
            Head* shared = Shared;
            Bounds.Check(chunk, ChunkCount);
            long before = (long)chunk << shared->Shift;
            return new Span<T>(shared->Chunks[chunk], (int)Math.Min(1L << shared->Shift, shared->Count - before));
        }

        /// <summary>Removes all items. Keeps the chunks.</summary>
        public readonly void Clear()
        {
            Head* shared = Shared;
            shared->Count = 0;
            shared->Next = null;
            shared->End = null;
        }

        /// <summary>Enumerates the items.</summary>
        public readonly Enumerator GetEnumerator()
        {
            memory.Check();
            return new Enumerator(this);
        }

        /// <summary>Frees the memory. A second call on the same variable does nothing; with checks it throws on a
        /// copy.</summary>
        public void Dispose()
        {
            if (memory.IsCreated)
            {
                Head* shared = Shared;
                for (int i = shared->Chunked - 1; i >= 0; i--)
                {
                    memory.Free(shared->Chunks[i]);
                }

                memory.Free(shared->Chunks);
                memory.End();
            }
        }

        private readonly Head* Shared => (Head*)memory.Block;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private readonly T* Next()
        {
            Head* shared = Shared;
            if (shared->Next == shared->End)
            {
                NextChunk();
            }

            T* at = shared->Next;
            shared->Next = at + 1;
            shared->Count++;
            return at;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private readonly void NextChunk()
        {
            Head* shared = Shared;

            // The count must stay an int when the whole chunk is full.
            if (shared->Count > int.MaxValue - (1 << shared->Shift))
            {
                throw new OutOfMemoryException("A container holds at most " + int.MaxValue + " items.");
            }

            int chunk = shared->Count >> shared->Shift;
            if (chunk == shared->Chunked)
            {
                AddChunk();
            }

            shared->Next = shared->Chunks[chunk];
            shared->End = shared->Next + (1 << shared->Shift);
        }

        private readonly void AddChunk()
        {
            // Both may fail, and leave the list as it was.
            Head* shared = Shared;
            T* chunk = (T*)memory.Allocate((long)sizeof(T) << shared->Shift, RawMemory.AlignmentOf<T>());
            if (shared->Chunked == shared->Room)
            {
                try
                {
                    int room = Bounds.Grown(shared->Room, shared->Chunked + 1);
                    shared->Chunks = (T**)memory.Resize(
                        shared->Chunks, (long)shared->Chunked * sizeof(T*), (long)room * sizeof(T*), sizeof(T*));
                    shared->Room = room;
                }
                catch
                {
                    memory.Free(chunk);
                    throw;
                }
            }

            shared->Chunks[shared->Chunked++] = chunk;
            memory.Keep();
        }

        /// <summary>Enumerates the items in order, including those that are added meanwhile.</summary>
        public struct Enumerator
        {
            private readonly UnmanagedChunkedList<T> list;
            private T* item;
            private T* last;
            private int seen;

            internal Enumerator(UnmanagedChunkedList<T> list)
            {
                this.list = list;
                item = null;
                last = null;
                seen = 0;
            }

            /// <summary>The current item.</summary>
            public readonly ref T Current
            {
                [MethodImpl(MethodImplOptions.AggressiveInlining)]
                get
                {
                    list.memory.Check();
                    return ref *item;
                }
            }

            /// <summary>Moves to the next item.</summary>
            /// <returns>False after the last.</returns>
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public bool MoveNext()
            {
                if (item == last)
                {
                    return NextPart();
                }

                item++;
                return true;
            }

            /// <summary>Goes on at the items of the next chunk, or at those that were added to this one.</summary>
            private bool NextPart()
            {
                Head* shared = list.Shared;
                if (seen >= shared->Count)
                {
                    return false;
                }

                int chunkLength = 1 << shared->Shift;
                int start = seen & (chunkLength - 1);
                int items = Math.Min(chunkLength - start, shared->Count - seen);
                item = shared->Chunks[seen >> shared->Shift] + start;
                last = item + items - 1;
                seen += items;
                return true;
            }
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
