using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Which heap is behind <see cref="Lifetime.Persistent"/>.</summary>
    public enum PersistentHeap
    {
        /// <summary>The runtime's own: <c>Marshal.AllocHGlobal</c>, with 16 bytes more a block for alignment.</summary>
        Runtime = 0,

        /// <summary>Blockyard's native library, where it is present.</summary>
        Native = 1,
    }

    /// <summary>Blocks of unmanaged memory by how long they live.</summary>
    /// <remarks>
    /// <para>Bounds: <see cref="Lifetime.Temp"/> is a bump of the calling thread's region, without lock, header or call to
    /// the operating system, until the region is full; then, counted, it is <see cref="Lifetime.TempJob"/>.
    /// TempJob is a bump of a region that the thread owns; freeing on that thread takes no atomic, on another thread one;
    /// a region is used again when its last block is freed. <see cref="Lifetime.Persistent"/> costs what its
    /// <see cref="PersistentHeap"/> costs and may call the operating system.</para>
    /// <para>Contents are unspecified (checked builds fill temp blocks with 0xCD). Every member may be called from any
    /// thread; a Temp block belongs to the thread that allocated it.</para>
    /// </remarks>
    public static unsafe class UnmanagedMemory
    {
        /// <summary>The largest alignment that may be asked for, in bytes.</summary>
        public const int LargestAlignment = RawMemory.LargestAlignment;

        /// <summary>Whether the native library was found, and with it <see cref="PersistentHeap.Native"/>.</summary>
        public static bool IsNativeHeapPresent => NativeHeap.IsPresent;

        /// <summary>The heap behind <see cref="Lifetime.Persistent"/>; to be set before its first block.</summary>
        /// <exception cref="InvalidOperationException">A block was already allocated, whose heap would be forgotten.</exception>
        /// <exception cref="DllNotFoundException">The native library is not present.</exception>
        public static PersistentHeap PersistentHeap
        {
            get => PersistentMemory.Heap;
            set => PersistentMemory.Heap = value;
        }

        /// <summary>Whether block allocators that hold 64 MiB or more may ask Linux for huge pages, which they do as long as those
        /// take less CPU time than small ones; true unless the environment's <c>BLOCKYARD_HUGE_PAGES</c> is 0.</summary>
        /// <remarks>Pages that an allocator has stay as they are. It becomes false by itself where the kernel refuses the request.
        /// Asking loses at most 5 % of the time that pages take in small ones, and one ask (0.1 ms, or 5 ms where a virtual
        /// machine's host has to find the memory). Elsewhere than on 64-bit Linux 5.14 or later nothing is asked for.</remarks>
        public static bool HugePages
        {
            get => SlabPages.MayAsk;
            set => SlabPages.MayAsk = value;
        }

        /// <summary>Temp and TempJob of the calling thread, looked up once for all that is allocated in one place.</summary>
        public static ThreadAllocator ThisThread => new ThreadAllocator(ThreadMemory.Current.State);

        /// <summary>A block of at least <paramref name="size"/> bytes.</summary>
        /// <param name="size">Bytes; 0 gives a block that may be freed and has no usable byte.</param>
        /// <param name="alignment">A power of two up to <see cref="LargestAlignment"/>.</param>
        /// <param name="lifetime">How long it lives, and so which allocator it is from.</param>
        /// <exception cref="ArgumentOutOfRangeException">A negative size, no such alignment, no such lifetime.</exception>
        /// <exception cref="OutOfMemoryException">There is no such memory; nothing has changed.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public static void* Malloc(long size, int alignment, Lifetime lifetime)
        {
#if BLOCKYARD_RELEASE
            // The ordinary cases in the caller's own code, in the terms that Mono compiles well: few local variables, since it
            // clears each at every call, and integers, since it divides the difference of two byte pointers by one. One test
            // is for an alignment that is no power of two, one that is too large, and a cursor that first has to be aligned,
            // which takes the other way. TempJob is asked for first since it has more to do.
            ThreadState* thread = ThreadState.Current;
            long start;
            if ((long)thread != 0)
            {
                if (lifetime == Lifetime.TempJob)
                {
                    start = (long)thread->JobCursor;
                    if (((alignment - 1) & ((int)start | alignment | -RawMemory.LargestAlignment)) == 0
                        && size > 0 && size <= (long)thread->InlineJobLimit - start)
                    {
                        thread->JobCursor = (byte*)(start + size);
                        thread->JobLive = thread->JobLive + 1;
                        return (void*)start;
                    }
                }
                else if (lifetime == Lifetime.Temp)
                {
                    start = (long)thread->TempCursor;
                    if (((alignment - 1) & ((int)start | alignment | -RawMemory.LargestAlignment)) == 0
                        && size > 0 && size <= (long)thread->TempLimit - start)
                    {
                        thread->LastBlock = (byte*)start;
                        thread->TempCursor = (byte*)(start + size);
                        return (void*)start;
                    }
                }
            }
#endif
            return MallocSlowly(size, alignment, lifetime);
        }

        /// <summary>Gives a block back. Null does nothing.</summary>
        /// <remarks>
        /// Temp: the thread's last block is taken back, a block that overflowed into TempJob is freed, any other waits for
        /// the frame's end. In checked builds a Temp block of a frame that has ended is an error.
        /// </remarks>
        /// <param name="block">A live block that <see cref="Malloc"/> gave with the same lifetime.</param>
        /// <param name="lifetime">That lifetime.</param>
        /// <exception cref="InvalidOperationException">Checked builds: the block is not one of that lifetime.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public static void Free(void* block, Lifetime lifetime)
        {
#if BLOCKYARD_RELEASE
            ThreadState* thread = ThreadState.Current;
            if ((long)thread != 0)
            {
                if (lifetime == Lifetime.TempJob)
                {
                    if (((long)block & -ThreadState.JobRegionSize) == (long)thread->InlineJob && thread->JobLive > 1)
                    {
                        thread->JobLive = thread->JobLive - 1;
                        return;
                    }
                }
                else if (lifetime == Lifetime.Temp)
                {
                    // Any but the last of the region waits for the frame's end.
                    if (block < thread->LastBlock && block >= thread->TempStart)
                    {
                        return;
                    }
                }
            }
#endif
            FreeSlowly(block, lifetime);
        }

        /// <summary>Reports every TempJob and Persistent block that is live and was allocated while detection was on.</summary>
        /// <returns>How many there are.</returns>
        public static int ReportLiveBlocks() => BlockTracker.ReportAll();

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void* MallocSlowly(long size, int alignment, Lifetime lifetime)
        {
            RawMemory.CheckAlignment(alignment);
            if (size < 0)
            {
                throw new ArgumentOutOfRangeException(nameof(size), size, "A size is 0 or more.");
            }

            size = Math.Max(size, 1);
            switch (lifetime)
            {
                case Lifetime.Temp:
                    return ThreadMemory.Current.TakeTemp(size, alignment);
                case Lifetime.TempJob:
                    return ThreadMemory.Current.TakeJob(size, alignment);
                case Lifetime.Persistent:
                    return PersistentMemory.Allocate(size, alignment);
                default:
                    throw new ArgumentOutOfRangeException(nameof(lifetime), lifetime, "Not a lifetime.");
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void FreeSlowly(void* block, Lifetime lifetime)
        {
            if (block == null)
            {
                return;
            }

            switch (lifetime)
            {
                case Lifetime.Temp:
                    ThreadMemory.Current.GiveTemp((byte*)block);
                    break;
                case Lifetime.TempJob:
                    ThreadMemory.Current.GiveJob((byte*)block);
                    break;
                case Lifetime.Persistent:
                    PersistentMemory.Free(block);
                    break;
                default:
                    throw new ArgumentOutOfRangeException(nameof(lifetime), lifetime, "Not a lifetime.");
            }
        }
    }
}
