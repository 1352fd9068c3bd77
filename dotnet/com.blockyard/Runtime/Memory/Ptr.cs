using System;
#if UNITY_5_3_OR_NEWER
using Unity.Collections.LowLevel.Unsafe;
#endif

namespace Blockyard.Memory
{
    /// <summary>A typed pointer that can be stored in fields, lists and dictionaries, which a <c>ref</c>
    /// cannot.</summary>
    /// <remarks>
    /// Eight bytes on a 64-bit runtime. It does not own its item and does not keep the allocator alive. It is valid
    /// until the item is freed or the allocator is reset or disposed. Use <see cref="Handle{T}"/> where a stale
    /// reference must be caught.
    /// </remarks>
    /// <typeparam name="T">What the pointer points at.</typeparam>
    public readonly unsafe struct Ptr<T> : IEquatable<Ptr<T>>
        where T : unmanaged
    {
#if UNITY_5_3_OR_NEWER
        // Else Unity's job debugger refuses jobs with such a field.
        [NativeDisableUnsafePtrRestriction]
#endif
        private readonly T* address;

        /// <summary>Wraps an address, which must be aligned for <typeparamref name="T"/> or be null.</summary>
        /// <param name="address">The address.</param>
        public Ptr(T* address)
        {
            this.address = address;
        }

        /// <summary>Whether it points at nothing.</summary>
        public bool IsNull => address == null;

        /// <summary>The item. Not checked: a null or stale pointer corrupts memory or ends the process.</summary>
        public ref T Value => ref *address;

        /// <summary>The address itself.</summary>
        public T* Address => address;

        /// <summary>The item <paramref name="index"/> places after this one, for a pointer to the first of
        /// several.</summary>
        /// <param name="index">The distance in items; not checked.</param>
        public ref T this[int index] => ref address[index];

        /// <summary>Whether both point at the same address.</summary>
        /// <param name="left">One pointer.</param>
        /// <param name="right">The other pointer.</param>
        public static bool operator ==(Ptr<T> left, Ptr<T> right) => left.address == right.address;

        /// <summary>Whether they point at different addresses.</summary>
        /// <param name="left">One pointer.</param>
        /// <param name="right">The other pointer.</param>
        public static bool operator !=(Ptr<T> left, Ptr<T> right) => left.address != right.address;

        /// <inheritdoc/>
        public bool Equals(Ptr<T> other) => address == other.address;

        /// <inheritdoc/>
        public override bool Equals(object? obj) => obj is Ptr<T> other && Equals(other);

        /// <inheritdoc/>
        public override int GetHashCode() => ((ulong)address).GetHashCode();

        /// <inheritdoc/>
        public override string ToString() => "0x" + ((ulong)address).ToString("x");
    }
}
