using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Hands out items of one unmanaged type from large blocks that the garbage collector never sees.</summary>
    /// <remarks>
    /// <para>Bounds: an item costs its own size, rounded up to its alignment, and no header. Allocation is O(1) by a bump
    /// pointer; once a block (<see cref="ItemsPerBlock"/> items, 32,768 by default) the runtime is asked for memory.
    /// <see cref="Reset"/> and the end of a scope are O(1) in items. Nothing is allocated on the collected heap in the
    /// steady state.</para>
    /// <para>Items are freed together: by <see cref="Reset"/>, at the end of a <see cref="BeginScope"/>, or by
    /// <see cref="Dispose()"/>. Only an item that has a <see cref="Handle{T}"/> can be freed by itself. A <c>ref</c>,
    /// <see cref="Ptr{T}"/> or span is valid until then, is not checked, and does not keep the allocator alive.</para>
    /// <para>One thread at a time. An allocator that was never disposed of is reported by its finalizer, which keeps the
    /// memory: a pointer into it may still be in use.</para>
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public sealed unsafe class UnmanagedAllocator<T> : IDisposable
        where T : unmanaged
    {
        /// <summary>Items a block unless the constructor says otherwise.</summary>
        public const int DefaultItemsPerBlock = 32768;

        private readonly BlockStack memory;
        private readonly HandleTable handles;
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

        /// <summary>An allocator that holds no memory until the first item.</summary>
        /// <param name="itemsPerBlock">Items a block, at least 1.</param>
        /// <param name="zeroed">Whether items are set to zero when they are handed out.</param>
        /// <param name="alignment">Bytes, a power of two up to 16,384; 0 is the type's own. Each item and the first of
        /// each span is at a multiple of it.</param>
        /// <exception cref="ArgumentOutOfRangeException">A count below 1, a block that cannot be addressed, or no such
        /// alignment.</exception>
        public UnmanagedAllocator(int itemsPerBlock = DefaultItemsPerBlock, bool zeroed = true, int alignment = 0)
        {
            if (itemsPerBlock < 1)
            {
                GC.SuppressFinalize(this);
                throw new ArgumentOutOfRangeException(nameof(itemsPerBlock), itemsPerBlock, "A block holds at least one item.");
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
            memory = new BlockStack((long)stride * itemsPerBlock, Alignment);
            source = MemorySource.Register(this);
            handles = new HandleTable(source.Seed);
        }

        /// <summary>Reports an allocator that nobody disposed of.</summary>
        ~UnmanagedAllocator()
        {
            if (memory != null && memory.Count > 0 && !LeakDetection.IsOff)
            {
                LeakDetection.Report(
                    "an UnmanagedAllocator<" + typeof(T).Name + "> with " + live + " items in " + memory.BytesReserved
                    + " bytes was not disposed of"
                    + (madeAt == null ? "; LeakMode.OnWithStacks tells where it was made" : ", made at" + Environment.NewLine + madeAt));
            }
        }

        /// <summary>Items a block.</summary>
        public int ItemsPerBlock { get; }

        /// <summary>The alignment of items, in bytes.</summary>
        public int Alignment { get; }

        /// <summary>Whether <see cref="Dispose()"/> was called.</summary>
        public bool IsDisposed => disposed;

        /// <summary>This allocator as the place where a container keeps its memory.</summary>
        public MemorySource Source => source;

        /// <summary>What is held and was done until now.</summary>
        public AllocatorStatistics Statistics => new AllocatorStatistics(
            live, Math.Max(peak, live), live + given, memory.Count, memory.BytesReserved, memory.BytesUsed,
            memory.BytesInHugePages, handles.Live, resets);

        /// <summary>One item.</summary>
        /// <exception cref="OutOfMemoryException">The runtime has no further block; the allocator stays as it was.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public ref T Allocate() => ref *AllocateItem();

        /// <summary>One item, as a pointer that can be stored.</summary>
        /// <inheritdoc cref="Allocate" path="/exception"/>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public Ptr<T> AllocatePtr() => new Ptr<T>(AllocateItem());

        /// <summary>Several items side by side, <c>sizeof(T)</c> apart.</summary>
        /// <param name="count">How many; 0 gives an empty span. More than a block holds get a block of their own.</param>
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
            if (zeroed)
            {
                RawMemory.Clear(start, (long)sizeof(T) * count);
            }

            return new Span<T>(start, count);
        }

        /// <summary>One item with a handle, by which it can be freed alone and a stale use is caught.</summary>
        /// <inheritdoc cref="Allocate" path="/exception"/>
        public Handle<T> AllocateHandle()
        {
            ThrowIfDisposed();

            // Inside a scope no older place is used again: its end must take all that was handed out within it.
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
        /// <exception cref="InvalidOperationException">The handle is stale: its item was freed, or all were.</exception>
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

        /// <summary>The item of a handle if it is valid.</summary>
        /// <param name="handle">Any handle.</param>
        /// <param name="item">The item; null when the answer is false.</param>
        public bool TryGet(Handle<T> handle, out Ptr<T> item)
        {
            item = new Ptr<T>((T*)handles.Find(handle.Index, handle.Generation));
            return !item.IsNull;
        }

        /// <summary>Frees one item; its place serves a later <see cref="AllocateHandle"/>.</summary>
        /// <param name="handle">A handle that this allocator gave.</param>
        /// <exception cref="InvalidOperationException">The handle is stale; nothing was freed.</exception>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose()"/>.</exception>
        public void Free(Handle<T> handle)
        {
            if (handles.Find(handle.Index, handle.Generation) == null)
            {
                ThrowStale(handle);
            }

            // The place of one that is younger than the outermost scope goes with that scope, not to another handle.
            handles.Remove(handle.Index, depth == 0 ? int.MaxValue : scopes[0].Handles);
            GiveUp(1);
            for (int i = depth - 1; i >= 0 && handle.Index < scopes[i].Handles; i--)
            {
                scopes[i].Live--;
            }
        }

        /// <summary>Takes the item back that <see cref="Allocate"/> or <see cref="AllocatePtr"/> handed out last.</summary>
        /// <param name="last">That item.</param>
        /// <returns>False when it is not the last, was already freed or has a handle; nothing has changed then.</returns>
        public bool TryTakeBack(Ptr<T> last)
        {
            byte* item = (byte*)last.Address;
            if (item == null || item < memory.Start || item + stride != memory.Cursor || item == lastWithHandle)
            {
                return false;
            }

            memory.Cursor = item;
            GiveUp(1);
            return true;
        }

        /// <summary>Starts a unit of work: the end of the <c>using</c> frees all that was allocated within it, O(1) in items.</summary>
        /// <remarks>Scopes nest; the end of an outer one ends those within it.</remarks>
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
            return new AllocatorScope<T>(this, scopeSerial);
        }

        /// <summary>Frees all items and ends all handles and scopes; the blocks stay for the next items. O(1) in items.</summary>
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
            source.Invalidate();
        }

        /// <summary>Gives all memory back to the runtime. A second call does nothing.</summary>
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
            ThrowIfDisposed();

            // Rounded up, so that the bump pointer always stands at an item's alignment.
            long rounded = checked(size + Alignment - 1) & ~((long)Alignment - 1);
            return memory.Take(rounded, Math.Max(alignment, Alignment));
        }

        internal void EndScope(long serial)
        {
            // One that Reset, Dispose or an outer scope has ended is not found.
            for (int i = depth - 1; i >= 0; i--)
            {
                if (scopes[i].Serial == serial)
                {
                    memory.Rewind(scopes[i].Position);
                    handles.Truncate(scopes[i].Handles);
                    lastWithHandle = scopes[i].LastWithHandle;
                    GiveUp(live - scopes[i].Live);
                    depth = i;
                    return;
                }
            }
        }

        /// <remarks>In integers: Mono divides the difference of two byte pointers by one.</remarks>
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
            if (zeroed)
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
            throw new InvalidOperationException("The handle " + handle + " is stale: its item was freed.");
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
