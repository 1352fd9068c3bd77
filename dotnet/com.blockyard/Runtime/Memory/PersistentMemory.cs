using System;

namespace Blockyard.Memory
{
    /// <summary>The general heap behind <see cref="Lifetime.Persistent"/>.</summary>
    internal static unsafe class PersistentMemory
    {
        private static readonly object Gate = new object();
        private static volatile PersistentHeap heap;
        private static volatile bool used;

        internal static PersistentHeap Heap
        {
            get => heap;
            set
            {
                lock (Gate)
                {
                    if (used && value != heap)
                    {
                        throw new InvalidOperationException(
                            "A persistent block was already allocated; set the heap before the first one.");
                    }

                    if (value == PersistentHeap.Native && !NativeHeap.IsPresent)
                    {
                        throw new DllNotFoundException("Blockyard's native library was not found.");
                    }

                    heap = value;
                }
            }
        }

        internal static byte* Allocate(long size, int alignment)
        {
            if (!used)
            {
                lock (Gate)
                {
                    used = true;
                }
            }

            byte* block = heap == PersistentHeap.Native
                ? NativeHeap.Allocate(size, alignment)
                : FromRuntime(size, alignment);
            BlockTracker.AddPersistent(block, size);
            return block;
        }

        internal static void Free(void* block)
        {
            BlockTracker.RemovePersistent((byte*)block);
            if (heap == PersistentHeap.Native)
            {
                NativeHeap.Free(block);
            }
            else
            {
                RawMemory.Free(((byte**)block)[-1]);
            }
        }

        /// <summary>The word before the block holds the address of the runtime's block.</summary>
        private static byte* FromRuntime(long size, int alignment)
        {
            alignment = Math.Max(alignment, 2 * sizeof(byte*));
            long room = alignment <= RawMemory.NaturalAlignment ? alignment : alignment + sizeof(byte*);
            byte* raw = RawMemory.Allocate(size > long.MaxValue - room ? long.MaxValue : size + room);
            byte* block = RawMemory.Align(raw + sizeof(byte*), alignment);
            ((byte**)block)[-1] = raw;
            return block;
        }
    }
}
