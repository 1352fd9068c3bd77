using System;

namespace Blockyard.Memory
{
    /// <summary>Names an item of an <see cref="UnmanagedAllocator{T}"/> by index and generation, so that a stale handle
    /// is caught.</summary>
    /// <remarks>
    /// Eight bytes. The allocator gives every handle its own generation. A handle whose item was freed, or whose
    /// allocator was reset, never finds the item that took its place (until 2^31 handles later). The default value is
    /// never valid.
    /// </remarks>
    /// <typeparam name="T">The type of the item.</typeparam>
    public readonly struct Handle<T> : IEquatable<Handle<T>>
        where T : unmanaged
    {
        internal Handle(int index, uint generation)
        {
            Index = index;
            Generation = generation;
        }

        /// <summary>The item's index in the allocator's handle table.</summary>
        public int Index { get; }

        /// <summary>Tells apart the handles that had this index; 0 for no handle.</summary>
        public uint Generation { get; }

        /// <summary>Whether both name the same item.</summary>
        /// <param name="left">One handle.</param>
        /// <param name="right">The other handle.</param>
        public static bool operator ==(Handle<T> left, Handle<T> right) => left.Equals(right);

        /// <summary>Whether they name different items.</summary>
        /// <param name="left">One handle.</param>
        /// <param name="right">The other handle.</param>
        public static bool operator !=(Handle<T> left, Handle<T> right) => !left.Equals(right);

        /// <inheritdoc/>
        public bool Equals(Handle<T> other) => Index == other.Index && Generation == other.Generation;

        /// <inheritdoc/>
        public override bool Equals(object? obj) => obj is Handle<T> other && Equals(other);

        /// <inheritdoc/>
        public override int GetHashCode() => unchecked((Index * 397) ^ (int)Generation);

        /// <inheritdoc/>
        public override string ToString() => Index + ":" + Generation;
    }
}
