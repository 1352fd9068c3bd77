using System;
using Blockyard.Memory;

namespace Blockyard.Sockets
{
    /// <summary>A batch that receives straight into items of an <see cref="UnmanagedAllocator{T}"/>, one a datagram.</summary>
    /// <remarks>
    /// Each received datagram becomes an item that lives as long as the allocator's others, without a copy; the places of those
    /// that did not come are taken back at once. Make the allocator with <c>zeroed: false</c> unless the bytes after a short
    /// datagram matter. One thread at a time, the allocator included.
    /// </remarks>
    /// <typeparam name="T">The packet.</typeparam>
    public sealed unsafe class SlotBatch<T> : DatagramBatch
        where T : unmanaged
    {
        private readonly UnmanagedAllocator<T> allocator;

        /// <summary>An empty batch.</summary>
        /// <param name="allocator">Where the items come from; not disposed of with the batch.</param>
        /// <param name="capacity">Datagrams, 1 to 1024.</param>
        public SlotBatch(UnmanagedAllocator<T> allocator, int capacity = 64)
            : base(capacity, sizeof(T), ownsPayload: false)
        {
            this.allocator = allocator ?? throw new ArgumentNullException(nameof(allocator));
        }

        /// <summary>The item that a datagram was received into.</summary>
        /// <param name="index">0 to <see cref="DatagramBatch.Count"/> less 1.</param>
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
                // Where a block of the allocator ended, the places before stay taken until its next reset.
                if (!allocator.TryTakeBack(new Ptr<T>((T*)StartAt(i))))
                {
                    break;
                }
            }
        }
    }
}
