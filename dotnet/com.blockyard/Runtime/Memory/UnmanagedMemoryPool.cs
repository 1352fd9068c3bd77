using System;
using System.Buffers;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Rents unmanaged buffers, for pipelines and streams: no buffer is on the collected heap, and none has to
    /// be pinned.</summary>
    /// <remarks>
    /// Buffers have a power of two of bytes, from 256 on. A returned one is kept for the next of its size, up to
    /// <see cref="Kept"/> of a size, so the steady state makes no garbage and calls no allocator. Renting and returning
    /// take a lock. Any thread. A buffer that is never returned is not freed. One that was returned must not be used:
    /// it throws until the pool lends it again, and with <see cref="Checks"/> for ever.
    /// </remarks>
    public sealed unsafe class UnmanagedMemoryPool : MemoryPool<byte>
    {
        /// <summary>Returned buffers of one size that the pool keeps.</summary>
        public const int Kept = 64;

        private const int SmallestShift = 8;
        private const int LargestShift = 30;
        private readonly Stack<Buffer>[] idle = new Stack<Buffer>[LargestShift - SmallestShift + 1];
        private bool disposed;

        /// <summary>Creates an empty pool. It takes memory when a buffer is rented.</summary>
        public UnmanagedMemoryPool()
        {
            for (int i = 0; i < idle.Length; i++)
            {
                idle[i] = new Stack<Buffer>();
            }
        }

        /// <summary>The largest buffer, in bytes: 1 GiB.</summary>
        public override int MaxBufferSize => 1 << LargestShift;

        /// <summary>Rents a buffer. Dispose of it to return it.</summary>
        /// <param name="minBufferSize">The bytes it has at least; -1 for 4096. Their contents are unspecified.</param>
        /// <exception cref="ArgumentOutOfRangeException">Below -1, or above <see cref="MaxBufferSize"/>.</exception>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        /// <exception cref="ObjectDisposedException">The pool was disposed.</exception>
        public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
        {
            if (minBufferSize < -1 || minBufferSize > MaxBufferSize)
            {
                throw new ArgumentOutOfRangeException(
                    nameof(minBufferSize), minBufferSize, "A buffer has 0 to " + MaxBufferSize + " bytes.");
            }

            int wanted = minBufferSize == -1 ? 4096 : minBufferSize;
            int shift = SmallestShift;
            while (1 << shift < wanted)
            {
                shift++;
            }

            lock (idle)
            {
                if (disposed)
                {
                    throw new ObjectDisposedException(nameof(UnmanagedMemoryPool));
                }

                Stack<Buffer> some = idle[shift - SmallestShift];
                if (some.Count > 0)
                {
                    return some.Pop().Lend();
                }
            }

            return new Buffer(this, shift).Lend();
        }

        /// <summary>Frees the buffers that are not rented. A rented one is freed when it is returned.</summary>
        /// <param name="disposing">Whether it is called by <c>Dispose</c>.</param>
        protected override void Dispose(bool disposing)
        {
            lock (idle)
            {
                disposed = true;
                foreach (Stack<Buffer> some in idle)
                {
                    while (some.Count > 0)
                    {
                        some.Pop().Free();
                    }
                }
            }
        }

        private void Return(Buffer buffer, int shift)
        {
            lock (idle)
            {
                // A second return does nothing.
                if (!buffer.TakeBack())
                {
                    return;
                }

                Stack<Buffer> some = idle[shift - SmallestShift];
                if (disposed || some.Count == Kept)
                {
                    buffer.Free();
                }
                else
                {
                    // With checks in another object: the former renter's never shows the next one's buffer.
                    some.Push(Checks.AreOn ? new Buffer(buffer) : buffer);
                }
            }
        }

        private sealed class Buffer : MemoryManager<byte>
        {
            private readonly UnmanagedMemoryPool pool;
            private readonly int shift;
            private byte* block;
            private bool isLent;

            internal Buffer(UnmanagedMemoryPool pool, int shift)
            {
                this.pool = pool;
                this.shift = shift;
                block = (byte*)UnmanagedMemory.Malloc(1L << shift, 16, Lifetime.Persistent);
            }

            /// <summary>The memory of another buffer, which has none from now on.</summary>
            internal Buffer(Buffer other)
            {
                pool = other.pool;
                shift = other.shift;
                block = other.block;
                other.block = null;
            }

            public override Span<byte> GetSpan() => isLent
                ? new Span<byte>(block, 1 << shift)
                : throw new ObjectDisposedException("buffer", "The buffer was returned to its pool.");

            public override MemoryHandle Pin(int elementIndex = 0)
            {
                fixed (byte* first = &MemoryMarshal.GetReference(GetSpan().Slice(elementIndex)))
                {
                    return new MemoryHandle(first);
                }
            }

            public override void Unpin()
            {
            }

            internal Buffer Lend()
            {
                isLent = true;
                return this;
            }

            internal bool TakeBack()
            {
                bool was = isLent;
                isLent = false;
                return was;
            }

            internal void Free()
            {
                UnmanagedMemory.Free(block, Lifetime.Persistent);
                block = null;
            }

            protected override void Dispose(bool disposing) => pool.Return(this, shift);
        }
    }
}
