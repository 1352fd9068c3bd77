using System;
using System.Buffers;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Owns items in unmanaged memory and shows them as <see cref="Memory{T}"/>, for interfaces of the runtime
    /// that take no <see cref="Span{T}"/>.</summary>
    /// <remarks>
    /// One object on the collected heap and one allocation; pinning costs nothing, because the items never move. After
    /// <c>Dispose</c> its <see cref="Memory{T}"/> must not be used: it throws. With <see cref="Checks"/> it throws also
    /// after the end of a Temp frame or the reset of an allocator. Threads may share it like an array; one in Temp must
    /// be made and disposed by the same thread in the same frame.
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public sealed unsafe class UnmanagedMemoryOwner<T> : MemoryManager<T>
        where T : unmanaged
    {
        private UnmanagedArray<T> items;

        /// <summary>Takes memory for a number of items.</summary>
        /// <param name="length">The number of items, 0 or more.</param>
        /// <param name="source">Where the memory comes from.</param>
        /// <param name="zeroed">Whether to set the items to zero.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedMemoryOwner(int length, MemorySource source, bool zeroed = true)
        {
            items = new UnmanagedArray<T>(length, source, zeroed);
        }

        /// <inheritdoc/>
        public override Span<T> GetSpan() => items.IsCreated
            ? items.AsSpan()
            : throw new ObjectDisposedException(nameof(UnmanagedMemoryOwner<T>));

        /// <inheritdoc/>
        public override MemoryHandle Pin(int elementIndex = 0)
        {
            // The address behind the last item is allowed, as in the runtime's own managers.
            Span<T> all = GetSpan();
            if ((uint)elementIndex > (uint)all.Length)
            {
                throw new ArgumentOutOfRangeException(nameof(elementIndex));
            }

            fixed (T* first = &MemoryMarshal.GetReference(all))
            {
                return new MemoryHandle(first + elementIndex);
            }
        }

        /// <inheritdoc/>
        public override void Unpin()
        {
        }

        /// <inheritdoc/>
        protected override void Dispose(bool disposing) => items.Dispose();
    }
}
