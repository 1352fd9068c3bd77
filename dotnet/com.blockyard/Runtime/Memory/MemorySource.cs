using System;

namespace Blockyard.Memory
{
    /// <summary>Where a container gets its memory: a <see cref="Lifetime"/> or an
    /// <see cref="UnmanagedAllocator{T}"/>.</summary>
    /// <remarks>
    /// Twelve bytes and blittable, so that containers stay unmanaged and can hold each other. A lifetime converts to
    /// it, and <see cref="UnmanagedAllocator{T}.Source"/> gives an allocator's. The default value is
    /// <see cref="Lifetime.Temp"/>.
    /// </remarks>
    public readonly unsafe struct MemorySource : IEquatable<MemorySource>
    {
        private readonly int lifetime;
        private readonly int slot;
        private readonly uint generation;

        private MemorySource(int lifetime, int slot, uint generation)
        {
            this.lifetime = lifetime;
            this.slot = slot;
            this.generation = generation;
        }

        /// <summary>The lifetime; <see cref="Lifetime.Persistent"/> for an allocator.</summary>
        public Lifetime Lifetime => slot == 0 ? (Lifetime)lifetime : Lifetime.Persistent;

        /// <summary>Whether it is an allocator, which frees all its memory together.</summary>
        public bool IsAllocator => slot != 0;

        internal uint Seed => unchecked(((uint)slot << 16) ^ generation);

        /// <summary>The blocks of a lifetime.</summary>
        /// <param name="lifetime">The lifetime.</param>
        public static implicit operator MemorySource(Lifetime lifetime) => new MemorySource((int)lifetime, 0, 0);

        /// <summary>Whether both are the same source.</summary>
        /// <param name="left">One source.</param>
        /// <param name="right">The other source.</param>
        public static bool operator ==(MemorySource left, MemorySource right) => left.Equals(right);

        /// <summary>Whether they are different sources.</summary>
        /// <param name="left">One source.</param>
        /// <param name="right">The other source.</param>
        public static bool operator !=(MemorySource left, MemorySource right) => !left.Equals(right);

        /// <inheritdoc/>
        public bool Equals(MemorySource other) =>
            lifetime == other.lifetime && slot == other.slot && generation == other.generation;

        /// <inheritdoc/>
        public override bool Equals(object? obj) => obj is MemorySource other && Equals(other);

        /// <inheritdoc/>
        public override int GetHashCode() => unchecked((slot * 397) ^ (int)generation ^ lifetime);

        internal static MemorySource Register<T>(UnmanagedAllocator<T> allocator)
            where T : unmanaged
        {
            int slot = SourceTable.Add(new WeakSource<T>(allocator), out uint generation);
            return new MemorySource(0, slot, generation);
        }

        internal void Unregister() => SourceTable.Remove(slot, generation);

        /// <summary>Makes checked containers in the allocator fail from now on: their memory is gone.</summary>
        internal void Invalidate() => (*SourceTable.Cell(slot))++;

        internal byte* Allocate(long size, int alignment) => slot == 0
            ? (byte*)UnmanagedMemory.Malloc(size, alignment, (Lifetime)lifetime)
            : SourceTable.Find(slot, generation).Take(size, alignment);

        internal void Free(void* block)
        {
            if (slot == 0 && block != null)
            {
                UnmanagedMemory.Free(block, (Lifetime)lifetime);
            }
        }

        /// <summary>The cell that counts this place's lives, and whether a container must give it back.</summary>
        internal uint* SafetyCellOf(out bool owned)
        {
            owned = slot == 0 && lifetime != (int)Lifetime.Temp;
            return slot != 0 ? SourceTable.Cell(slot)
                : lifetime == (int)Lifetime.Temp ? ThreadMemory.Current.FrameCell
                : SafetyCell.Take();
        }

        private sealed class WeakSource<T> : SourceTable.ISource
            where T : unmanaged
        {
            private readonly WeakReference<UnmanagedAllocator<T>> allocator;

            internal WeakSource(UnmanagedAllocator<T> allocator)
            {
                // Weak, so that the table does not keep a forgotten allocator alive: its finalizer must report it.
                this.allocator = new WeakReference<UnmanagedAllocator<T>>(allocator);
            }

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
