using System;

namespace Blockyard.Memory
{
    /// <summary>Where a container gets its memory: a <see cref="Lifetime"/> or an
    /// <see cref="UnmanagedAllocator{T}"/>.</summary>
    /// <remarks>
    /// Eight bytes and blittable, so that containers stay unmanaged and can hold each other. A lifetime converts to
    /// it, and <see cref="UnmanagedAllocator{T}.Source"/> gives an allocator's. The default value is
    /// <see cref="Lifetime.Temp"/>.
    /// </remarks>
    public readonly unsafe struct MemorySource : IEquatable<MemorySource>
    {
        /// <summary>The slot of an allocator, which is above 0, or the negated lifetime.</summary>
        private readonly int place;
        private readonly uint generation;

        private MemorySource(int place, uint generation)
        {
            this.place = place;
            this.generation = generation;
        }

        /// <summary>The lifetime; <see cref="Lifetime.Persistent"/> for an allocator.</summary>
        public Lifetime Lifetime => IsAllocator ? Lifetime.Persistent : (Lifetime)(-place);

        /// <summary>Whether it is an allocator, which frees all its memory together.</summary>
        public bool IsAllocator => place > 0;

        /// <summary>Whether its blocks need no free and may be gone without one.</summary>
        internal bool EndsByItself => IsAllocator || Lifetime == Lifetime.Temp;

        internal uint Seed => unchecked(((uint)place << 16) ^ generation);

        /// <summary>The blocks of a lifetime.</summary>
        /// <param name="lifetime">The lifetime.</param>
        public static implicit operator MemorySource(Lifetime lifetime) =>
            new MemorySource(lifetime < 0 ? int.MinValue : -(int)lifetime, 0);

        /// <summary>Whether both are the same source.</summary>
        /// <param name="left">One source.</param>
        /// <param name="right">The other source.</param>
        public static bool operator ==(MemorySource left, MemorySource right) => left.Equals(right);

        /// <summary>Whether they are different sources.</summary>
        /// <param name="left">One source.</param>
        /// <param name="right">The other source.</param>
        public static bool operator !=(MemorySource left, MemorySource right) => !left.Equals(right);

        /// <inheritdoc/>
        public bool Equals(MemorySource other) => place == other.place && generation == other.generation;

        /// <inheritdoc/>
        public override bool Equals(object? obj) => obj is MemorySource other && Equals(other);

        /// <inheritdoc/>
        public override int GetHashCode() => unchecked((place * 397) ^ (int)generation);

        internal static MemorySource Register<T>(UnmanagedAllocator<T> allocator)
            where T : unmanaged
        {
            int slot = SourceTable.Add(new WeakSource<T>(allocator), out uint generation);
            return new MemorySource(slot, generation);
        }

        internal void Unregister() => SourceTable.Remove(place, generation);

        /// <summary>The cells of the containers in the allocator.</summary>
        internal SafetyCells Cells => SourceTable.Find(place, generation).Cells;

        /// <summary>Allocates a block of unspecified contents, to build containers of your own.</summary>
        /// <inheritdoc cref="UnmanagedMemory.Malloc"/>
        /// <param name="size">Bytes, 0 or more.</param>
        /// <param name="alignment">A power of two up to <see cref="UnmanagedMemory.LargestAlignment"/>.</param>
        public void* Malloc(long size, int alignment) => Allocate(RawMemory.CheckedSize(size, alignment), alignment);

        /// <summary>Frees a block of <see cref="Malloc"/>. Null does nothing. An allocator frees it with all
        /// others.</summary>
        /// <param name="block">The block.</param>
        public void Free(void* block)
        {
            if (!IsAllocator && block != null)
            {
                UnmanagedMemory.Free(block, (Lifetime)(-place));
            }
        }

        internal byte* Allocate(long size, int alignment) => IsAllocator
            ? SourceTable.Find(place, generation).Take(size, alignment)
            : (byte*)UnmanagedMemory.Malloc(size, alignment, (Lifetime)(-place));

        /// <summary>Makes a block larger, in place if possible. Null allocates. A failure changes nothing.</summary>
        internal byte* Resize(byte* block, long used, long size, int alignment)
        {
            if (block != null && place == -(int)Lifetime.Persistent)
            {
                return PersistentMemory.Resize(block, used, size, alignment);
            }

            if (block != null && place == -(int)Lifetime.Temp && ThreadMemory.Current.TryExtendTemp(block, size))
            {
                return block;
            }

            byte* fresh = Allocate(size, alignment);
            if (block != null)
            {
                RawMemory.Copy(block, fresh, used);
                Free(block);
            }

            return fresh;
        }

        /// <summary>A cell for a container, which ends at the latest when the source frees its memory.</summary>
        internal int TakeSafetyCell() => IsAllocator ? Cells.Take()
            : Lifetime == Lifetime.Temp ? ThreadMemory.Current.Cells.Take()
            : SafetyCell.Take();

        private sealed class WeakSource<T> : SourceTable.ISource
            where T : unmanaged
        {
            private readonly WeakReference<UnmanagedAllocator<T>> allocator;

            internal WeakSource(UnmanagedAllocator<T> allocator)
            {
                // Weak, so that the table does not keep a forgotten allocator alive: its finalizer must report it.
                this.allocator = new WeakReference<UnmanagedAllocator<T>>(allocator);
            }

            public SafetyCells Cells { get; } = new SafetyCells();

            public byte* Take(long size, int alignment)
            {
                if (!allocator.TryGetTarget(out UnmanagedAllocator<T>? target))
                {
                    throw new ObjectDisposedException(nameof(UnmanagedAllocator<T>));
                }

                return target.TakeBytes(size, alignment);
            }
        }
    }
}
