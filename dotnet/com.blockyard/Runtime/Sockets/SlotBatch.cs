using System;
using Blockyard.Memory;

namespace Blockyard.Sockets
{
    /// <summary>A batch that receives each datagram directly into an item of an
    /// <see cref="UnmanagedAllocator{T}"/>.</summary>
    /// <remarks>
    /// Each received datagram becomes an item of the allocator, without a copy. The unused items are freed at once.
    /// Create the allocator with <c>zeroed: false</c> unless the bytes after a short datagram matter. One thread at a
    /// time, including the allocator.
    /// </remarks>
    /// <typeparam name="T">The packet.</typeparam>
    public sealed unsafe class SlotBatch<T> : DatagramBatch
        where T : unmanaged
    {
        private readonly UnmanagedAllocator<T> allocator;

        /// <summary>Creates an empty batch.</summary>
        /// <param name="allocator">Where the items come from. The batch does not dispose it.</param>
        /// <param name="capacity">The number of datagrams, 1 to 1024.</param>
        public SlotBatch(UnmanagedAllocator<T> allocator, int capacity = 64)
            : base(capacity, sizeof(T), ownsPayload: false)
        {
            this.allocator = allocator ?? throw new ArgumentNullException(nameof(allocator));
        }

        /// <summary>The item that a datagram was received into.</summary>
        /// <param name="index">0 to <see cref="DatagramBatch.Count"/> - 1.</param>
        public Ptr<T> Slot(int index) => new Ptr<T>((T*)StartOf(index));

        internal override void BeginReceive()
        {
            base.BeginReceive();
            int i = 0;
            try
            {
                for (; i < Capacity; i++)
                {
                    SetStart(i, (byte*)allocator.AllocatePtr().Address);
                }
            }
            catch
            {
                TakeBack(0, i);
                throw;
            }
        }

        internal override void EndReceive(int received)
        {
            base.EndReceive(received);
            TakeBack(received, Capacity);
        }

        private void TakeBack(int from, int to)
        {
            for (int i = to - 1; i >= from; i--)
            {
                // Items before the end of a block of the allocator stay in use until its next reset.
                if (!allocator.TryTakeBack(new Ptr<T>((T*)StartAt(i))))
                {
                    break;
                }
            }
        }
    }
}
