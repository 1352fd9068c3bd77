#pragma warning disable CS0162 // checks are a constant in Unity
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Allocates items of one unmanaged type from large blocks that the garbage collector never
    /// sees.</summary>
    /// <remarks>
    /// <para>Bounds: an item costs its own size, rounded up to its alignment, and has no header. Allocation bumps a
    /// pointer and is O(1). It calls the runtime once per block of <see cref="ItemsPerBlock"/> items.
    /// <see cref="Reset"/> and the end of a scope are O(1) in items. The steady state makes no garbage.</para>
    /// <para><see cref="Reset"/>, the end of a <see cref="BeginScope"/> and <see cref="Dispose()"/> free items
    /// together. Only an item that has a <see cref="Handle{T}"/> can be freed alone. A <c>ref</c>, <see cref="Ptr{T}"/>
    /// or span is valid until its item is freed, is not checked, and does not keep the allocator alive.</para>
    /// <para>One thread at a time. The finalizer reports an allocator that was never disposed. It does not free the
    /// memory, because a pointer into it may still be in use.</para>
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public sealed unsafe class UnmanagedAllocator<T> : IDisposable
        where T : unmanaged
    {
        /// <summary>The default number of items per block.</summary>
        public const int DefaultItemsPerBlock = 32768;

        private readonly BlockStack memory;
        private readonly HandleTable handles;

        /// <summary>Guards spans and containers' memory, where threads share the allocator; else null.</summary>
        private readonly object? gate;
        private readonly MemorySource source;
        private readonly StackTrace? madeAt = LeakDetection.CaptureStack();
        private readonly bool zeroed;
        private readonly int stride;
        private long live;
        private long given;
        private long peak;
        private long resets;
        private byte* lastWithHandle;
        private Scope[] scopes = Array.Empty<Scope>();
        private int depth;
        private long scopeSerial;
        private bool disposed;

        /// <summary>Creates an allocator. It holds no memory before the first item.</summary>
        /// <param name="itemsPerBlock">Items per block, at least 1.</param>
        /// <param name="zeroed">Whether new items are zero. On Linux most memory is zero when it comes from the system
        /// and is not written again. False also never populates pages in advance.</param>
        /// <param name="alignment">Bytes, a power of two up to 16,384; 0 means the type's own. It applies to each item
        /// and to the first of each span.</param>
        /// <exception cref="ArgumentOutOfRangeException">A count below 1, a block that is too large, or an invalid
        /// alignment.</exception>
        public UnmanagedAllocator(int itemsPerBlock = DefaultItemsPerBlock, bool zeroed = true, int alignment = 0)
        {
            if (itemsPerBlock < 1)
            {
                GC.SuppressFinalize(this);
                throw new ArgumentOutOfRangeException(
                    nameof(itemsPerBlock), itemsPerBlock, "A block holds at least one item.");
            }

            if (alignment != 0 && !RawMemory.IsAlignment(alignment))
            {
                GC.SuppressFinalize(this);
                RawMemory.CheckAlignment(alignment);
            }

            Alignment = Math.Max(alignment, RawMemory.AlignmentOf<T>());
            ItemsPerBlock = itemsPerBlock;
            this.zeroed = zeroed;
            stride = (sizeof(T) + Alignment - 1) & ~(Alignment - 1);
            memory = new BlockStack((long)stride * itemsPerBlock, Alignment, zeroed);
            source = MemorySource.Register(this);
            handles = new HandleTable(source.Seed);
        }

        /// <summary>Creates the allocator behind a <see cref="RewindableMemory"/>, which threads share.</summary>
        internal UnmanagedAllocator(int itemsPerBlock, int alignment, object gate)
            : this(itemsPerBlock, zeroed: false, alignment) => this.gate = gate;

        /// <summary>Reports an allocator that was not disposed.</summary>
        ~UnmanagedAllocator()
        {
            if (memory != null && memory.Count > 0 && !LeakDetection.IsOff)
            {
                LeakDetection.ReportUndisposed(
                    "an UnmanagedAllocator<" + typeof(T).Name + ">", live, memory.BytesReserved, madeAt);
            }
        }

        /// <summary>Items per block.</summary>
        public int ItemsPerBlock { get; }

        /// <summary>The alignment of items, in bytes.</summary>
        public int Alignment { get; }

        /// <summary>Whether <see cref="Dispose()"/> was called.</summary>
        public bool IsDisposed => disposed;

        /// <summary>This allocator as the source of a container's memory.</summary>
        public MemorySource Source => source;

        /// <summary>A snapshot of what the allocator holds and has done.</summary>
        public AllocatorStatistics Statistics => new AllocatorStatistics(
            live, Math.Max(peak, live), live + given, memory.Count, memory.BytesReserved, memory.BytesUsed,
            memory.BytesInHugePages, handles.Live, resets);

        /// <summary>Allocates one item.</summary>
        /// <exception cref="OutOfMemoryException">The runtime has no memory for another block. The allocator is
        /// unchanged.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public ref T Allocate() => ref *AllocateItem();

        /// <summary>Allocates one item and returns a pointer that can be stored.</summary>
        /// <inheritdoc cref="Allocate" path="/exception"/>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public Ptr<T> AllocatePtr() => new Ptr<T>(AllocateItem());

        /// <summary>Allocates several items side by side, <c>sizeof(T)</c> apart.</summary>
        /// <param name="count">The number of items; 0 gives an empty span. More items than a block holds get their own
        /// block.</param>
        /// <inheritdoc cref="Allocate" path="/exception"/>
        public Span<T> AllocateSpan(int count)
        {
            if (count < 0)
            {
                throw new ArgumentOutOfRangeException(nameof(count), count, "A count is 0 or more.");
            }

            ThrowIfDisposed();
            if (count == 0)
            {
                return Span<T>.Empty;
            }

            byte* start = TakeBytes((long)sizeof(T) * count, Alignment);
            live += count;
            memory.Clear(start, (long)sizeof(T) * count);

            return new Span<T>(start, count);
        }

        /// <summary>Allocates one item with a handle. The item can be freed alone, and a stale handle is
        /// caught.</summary>
        /// <inheritdoc cref="Allocate" path="/exception"/>
        public Handle<T> AllocateHandle()
        {
            ThrowIfDisposed();

            // A scope does not reuse older items: its end must free everything that was allocated within it.
            T* item = depth == 0 ? (T*)handles.PeekFree() : null;
            bool reuse = item != null;
            if (reuse)
            {
                live++;
                if (zeroed)
                {
                    *item = default;
                }
            }
            else
            {
                item = AllocateItem();
                lastWithHandle = (byte*)item;
            }

            int index = handles.Add(item, reuse, out uint generation);
            return new Handle<T>(index, generation);
        }

        /// <summary>The item of a handle.</summary>
        /// <param name="handle">A handle that this allocator gave.</param>
        /// <exception cref="InvalidOperationException">The handle is stale: its item was freed, alone or with all
        /// others.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        public ref T Get(Handle<T> handle)
        {
            T* item = (T*)handles.Find(handle.Index, handle.Generation);
            if (item == null)
            {
                ThrowStale(handle);
            }

            return ref *item;
        }

        /// <summary>Gets the item of a handle if the handle is valid.</summary>
        /// <param name="handle">Any handle.</param>
        /// <param name="item">The item; null when the result is false.</param>
        public bool TryGet(Handle<T> handle, out Ptr<T> item)
        {
            item = new Ptr<T>((T*)handles.Find(handle.Index, handle.Generation));
            return !item.IsNull;
        }

        /// <summary>Frees one item. A later <see cref="AllocateHandle"/> reuses its memory.</summary>
        /// <param name="handle">A handle that this allocator gave.</param>
        /// <exception cref="InvalidOperationException">The handle is stale. Nothing was freed.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        public void Free(Handle<T> handle)
        {
            if (handles.Find(handle.Index, handle.Generation) == null)
            {
                ThrowStale(handle);
            }

            // An item that is younger than the outermost scope is not reused: its memory ends with that scope.
            handles.Remove(handle.Index, depth == 0 ? int.MaxValue : scopes[0].Handles);
            GiveUp(1);
            for (int i = depth - 1; i >= 0 && handle.Index < scopes[i].Handles; i--)
            {
                scopes[i].Live--;
            }
        }

        /// <summary>Frees the last item that <see cref="Allocate"/> or <see cref="AllocatePtr"/> returned.</summary>
        /// <param name="last">That item.</param>
        /// <returns>False, without any change, when it is not the last item, was already freed or has a
        /// handle.</returns>
        public bool TryTakeBack(Ptr<T> last)
        {
            byte* item = (byte*)last.Address;
            if (item == null || item < memory.Start || item + stride != memory.Cursor || item == lastWithHandle)
            {
                return false;
            }

            memory.TakeBack(item);
            GiveUp(1);
            return true;
        }

        /// <summary>Starts a unit of work. The end of the <c>using</c> frees everything that was allocated within it;
        /// O(1) in items.</summary>
        /// <remarks>Scopes nest. The end of an outer scope ends those within it.</remarks>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        public AllocatorScope<T> BeginScope()
        {
            ThrowIfDisposed();
            if (depth == scopes.Length)
            {
                Array.Resize(ref scopes, Math.Max(4, depth * 2));
            }

            scopes[depth++] = new Scope
            {
                Serial = ++scopeSerial,
                Position = memory.Position,
                Live = live,
                Handles = handles.Count,
                LastWithHandle = lastWithHandle,
            };
            if (Checks.AreOn)
            {
                source.Cells.Scope = scopeSerial;
            }

            return new AllocatorScope<T>(this, scopeSerial);
        }

        /// <summary>Frees all items and ends all handles and scopes. It keeps the blocks for the next items. O(1) in
        /// items.</summary>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        public void Reset()
        {
            ThrowIfDisposed();
            GiveUp(live);
            memory.Rewind(null);
            handles.Clear();
            lastWithHandle = null;
            depth = 0;
            resets++;
            if (Checks.AreOn)
            {
                EndCells(0);
            }
        }

        /// <summary>Frees all memory. A second call does nothing.</summary>
        public void Dispose()
        {
            if (disposed)
            {
                return;
            }

            disposed = true;
            GC.SuppressFinalize(this);
            GiveUp(live);
            handles.Clear();
            depth = 0;
            memory.FreeAll();
            source.Unregister();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal byte* TakeBytes(long size, int alignment)
        {
            if (gate == null)
            {
                return Take(size, alignment);
            }

            lock (gate)
            {
                return Take(size, alignment);
            }
        }

        private byte* Take(long size, int alignment)
        {
            ThrowIfDisposed();

            // Rounded up to keep the bump pointer aligned for items.
            long rounded = checked(size + Alignment - 1) & ~((long)Alignment - 1);
            return memory.Take(rounded, Math.Max(alignment, Alignment));
        }

        internal void EndScope(long serial)
        {
            // A scope that Reset, Dispose or an outer scope has ended is not found.
            for (int i = depth - 1; i >= 0; i--)
            {
                if (scopes[i].Serial == serial)
                {
                    memory.Rewind(scopes[i].Position);
                    handles.Truncate(scopes[i].Handles);
                    lastWithHandle = scopes[i].LastWithHandle;
                    GiveUp(live - scopes[i].Live);
                    depth = i;
                    if (Checks.AreOn)
                    {
                        EndCells(serial);
                    }

                    return;
                }
            }
        }

        /// <summary>Makes checked containers that were made or grew in a scope fail from now on: their memory is gone.
        /// With 0, all.</summary>
        private void EndCells(long scope)
        {
            SafetyCells cells = source.Cells;
            cells.EndFrom(scope);
            cells.Scope = depth == 0 ? 0 : scopes[depth - 1].Serial;
        }

        /// <remarks>Subtracts integers, because Mono divides the difference of two byte pointers by one.</remarks>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private T* AllocateItem()
        {
            BlockStack blocks = memory;
            byte* item = blocks.Cursor;
            if ((long)blocks.Limit - (long)item < stride)
            {
                item = TakeBytes(stride, Alignment);
            }
            else
            {
                blocks.Cursor = item + stride;
            }

            live++;
            if ((ulong)item < (ulong)blocks.DirtyEnd)
            {
                *(T*)item = default;
            }

            return (T*)item;
        }

        private void GiveUp(long items)
        {
            peak = Math.Max(peak, live);
            live -= items;
            given += items;
        }

        private void ThrowStale(Handle<T> handle)
        {
            ThrowIfDisposed();
            throw new InvalidOperationException(
                "The handle " + handle + " is stale, because its item was freed, or of another allocator.");
        }

        private void ThrowIfDisposed()
        {
            if (disposed)
            {
                throw new ObjectDisposedException(nameof(UnmanagedAllocator<T>));
            }
        }

        private struct Scope
        {
            internal long Serial;
            internal BlockStack.Mark Position;
            internal long Live;
            internal int Handles;
            internal byte* LastWithHandle;
        }
    }
}
