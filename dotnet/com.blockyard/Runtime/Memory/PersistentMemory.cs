using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>The general heap behind <see cref="Lifetime.Persistent"/>.</summary>
    /// <remarks>
    /// <para>A block of the runtime's heap has a header of 16 bytes: its size, its size class and the address of the
    /// runtime's block. Freed blocks of up to <see cref="LargestCached"/> bytes go into a cache of the freeing thread,
    /// from which its next blocks of that size come. It holds at most <see cref="LargestCache"/> bytes, and is freed
    /// after the thread's end.</para>
    /// <para>Without static initialisers, which Mono would check in every call.</para>
    /// </remarks>
    internal static unsafe class PersistentMemory
    {
        /// <summary>The largest block that is cached, in bytes: its size class is the largest of four bits.</summary>
        internal const int LargestCached = 15 * 16;

        /// <summary>Bytes that a thread's cache holds at most, with headers.</summary>
        internal const int LargestCache = 256 * 1024;

        /// <summary>The alignment that every block has, in bytes.</summary>
        internal const int NaturalAlignment = 16;

        private const int HeaderSize = 16;
        private const long InCache = -1;
        private static volatile PersistentHeap heap;
        private static volatile bool used;

        internal static PersistentHeap Heap
        {
            get => heap;
            set
            {
                lock (Lock.Gate)
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

        /// <summary><see cref="UnmanagedMemory.Malloc"/>, with the calling thread's state as
        /// <see cref="ThreadMemory.TakeTemp"/>.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static byte* Malloc(ThreadState* thread, long size, int alignment)
        {
            if (thread != null && (ulong)size - 1 < LargestCached && alignment <= NaturalAlignment
                && RawMemory.IsAlignment(alignment))
            {
                long sizeClass = (size + 15) >> 4;
                byte* block = (byte*)thread->Cached[sizeClass];
                if (block != null)
                {
                    thread->Cached[sizeClass] = *(long*)block;
                    thread->CachedBytes -= (sizeClass << 4) + HeaderSize;
                    ((Header*)block)[-1].SizeAndClass = (size << 4) | sizeClass;
                    thread->PersistentBytes += size;
                    thread->PersistentAllocations++;
                    BlockTracker.AddPersistent(block, size);
                    return block;
                }
            }

            return AllocateSlowly(size, alignment);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void Free(ThreadState* thread, void* block)
        {
            if (block == null)
            {
                return;
            }

            BlockTracker.RemovePersistent((byte*)block);
            if (heap == PersistentHeap.Native)
            {
                NativeHeap.Free(block);
                return;
            }

            Header* header = (Header*)block - 1;
            long sizeAndClass = header->SizeAndClass;
            if (sizeAndClass < 0)
            {
                BlockTracker.ThrowNotLive(Lifetime.Persistent);
            }

            if (thread == null)
            {
                Interlocked.Add(ref ThreadMemory.PersistentBytesOfOthers, -(sizeAndClass >> 4));
            }
            else
            {
                thread->PersistentBytes -= sizeAndClass >> 4;
                long sizeClass = sizeAndClass & 15;
                if (sizeClass != 0 && thread->CachedBytes < LargestCache)
                {
                    header->SizeAndClass = InCache;
                    *(long*)block = thread->Cached[sizeClass];
                    thread->Cached[sizeClass] = (long)block;
                    thread->CachedBytes += (sizeClass << 4) + HeaderSize;
                    return;
                }
            }

            RawMemory.Free(header->Raw);
        }

        /// <summary>Makes a block larger.</summary>
        /// <inheritdoc cref="MemorySource.Resize"/>
        internal static byte* Resize(byte* block, long used, long size, int alignment)
        {
            if (heap == PersistentHeap.Native && alignment <= HeaderSize && !BlockTracker.MayHaveEntries)
            {
                return NativeHeap.Reallocate(block, size);
            }

            // Only a large block may gain from the runtime's reallocation. It must not be tracked by its address, and
            // start where the runtime's block starts.
            Header* header = (Header*)block - 1;
            if (heap == PersistentHeap.Runtime && alignment <= HeaderSize && size > LargestCached
                && !BlockTracker.MayHaveEntries && (header->SizeAndClass & 15) == 0 && header->Raw == (byte*)header
                && RawMemory.NaturalAlignment == HeaderSize)
            {
                long added = size - (header->SizeAndClass >> 4);
                byte* raw = RawMemory.Reallocate((byte*)header, checked(size + HeaderSize));
                header = (Header*)raw;
                header->SizeAndClass = size << 4;
                header->Raw = raw;
                Count(added, 0);
                return raw + HeaderSize;
            }

            byte* fresh = Malloc(ThreadState.Current, size, alignment);
            RawMemory.Copy(block, fresh, used);
            Free(ThreadState.Current, block);
            return fresh;
        }

        /// <summary>Gives a thread's cache back to the runtime.</summary>
        internal static void EmptyCache(ThreadState* thread)
        {
            thread->CachedBytes = 0;
            for (int sizeClass = 0; sizeClass <= LargestCached / 16; sizeClass++)
            {
                byte* block = (byte*)thread->Cached[sizeClass];
                while (block != null)
                {
                    byte* next = (byte*)*(long*)block;
                    RawMemory.Free(((Header*)block)[-1].Raw);
                    block = next;
                }

                thread->Cached[sizeClass] = 0;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static byte* AllocateSlowly(long size, int alignment)
        {
            size = RawMemory.CheckedSize(size, alignment);
            if (!used)
            {
                lock (Lock.Gate)
                {
                    used = true;
                }
            }

            byte* block = heap == PersistentHeap.Native
                ? NativeHeap.Allocate(size, alignment)
                : FromRuntime(size, Math.Max(alignment, HeaderSize));
            BlockTracker.AddPersistent(block, size);
            return block;
        }

        private static byte* FromRuntime(long size, int alignment)
        {
            bool isCached = size <= LargestCached && alignment == HeaderSize
                && RawMemory.NaturalAlignment == HeaderSize;
            long room = isCached ? (size + 15) & ~15L : size;
            long header = alignment <= RawMemory.NaturalAlignment ? HeaderSize : HeaderSize + alignment;
            byte* raw = RawMemory.Allocate(size > long.MaxValue - header ? long.MaxValue : room + header);
            byte* block = RawMemory.Align(raw + HeaderSize, alignment);
            ((Header*)block)[-1].SizeAndClass = (size << 4) | (isCached ? room >> 4 : 0);
            ((Header*)block)[-1].Raw = raw;
            Count(size, 1);
            return block;
        }

        private static void Count(long bytes, long allocations)
        {
            ThreadState* thread = ThreadMemory.Current.State;
            thread->PersistentBytes += bytes;
            thread->PersistentAllocations += allocations;
        }

        private struct Header
        {
            /// <summary>The block's size in bytes, and in the four low bits its size class: 0 if it is not cached when
            /// it is freed. <see cref="InCache"/> while it is in a cache.</summary>
            internal long SizeAndClass;

            /// <summary>The runtime's block.</summary>
            internal byte* Raw;
        }

        private static class Lock
        {
            internal static readonly object Gate = new object();
        }
    }
}
