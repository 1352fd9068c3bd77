using System;

namespace Blockyard.Memory
{
    /// <summary>A unit of work on an <see cref="UnmanagedAllocator{T}"/>: its end frees what was allocated within
    /// it.</summary>
    /// <typeparam name="T">The type of the allocator's items.</typeparam>
    public readonly struct AllocatorScope<T> : IDisposable
        where T : unmanaged
    {
        private readonly UnmanagedAllocator<T>? allocator;
        private readonly long serial;

        internal AllocatorScope(UnmanagedAllocator<T> allocator, long serial)
        {
            this.allocator = allocator;
            this.serial = serial;
        }

        /// <summary>Frees what was allocated since the scope began. A second call, or a call after a reset, does
        /// nothing.</summary>
        public void Dispose() => allocator?.EndScope(serial);
    }
}
