using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Which heap <see cref="Lifetime.Persistent"/> uses.</summary>
    public enum PersistentHeap
    {
        /// <summary>The runtime's heap: <c>Marshal.AllocHGlobal</c>, with 16 extra bytes per block for
        /// alignment.</summary>
        Runtime = 0,

        /// <summary>The heap of Blockyard's native library, if it is present.</summary>
        Native = 1,
    }

    /// <summary>Allocates blocks of unmanaged memory by how long they live.</summary>
    /// <remarks>
    /// <para>Bounds: <see cref="Lifetime.Temp"/> bumps a pointer in the calling thread's region, without a lock, header
    /// or system call. When the region is full, blocks come from <see cref="Lifetime.TempJob"/> and are counted as
    /// overflows. TempJob bumps a pointer in a region that the thread owns. A free on that thread uses no atomic
    /// operation, a free on another thread uses one. A region is reused when its last block is freed.
    /// <see cref="Lifetime.Persistent"/> costs what its <see cref="PersistentHeap"/> costs and may call the operating
    /// system.</para>
    /// <para>The contents of a new block are unspecified (with checks Temp blocks are filled with 0xCD). Any thread may
    /// call any member. A Temp block belongs to the thread that allocated it.</para>
    /// </remarks>
    public static unsafe class UnmanagedMemory
    {
        /// <summary>The largest supported alignment, in bytes.</summary>
        public const int LargestAlignment = RawMemory.LargestAlignment;

        /// <summary>Whether the native library was found, which <see cref="PersistentHeap.Native"/> needs.</summary>
        public static bool IsNativeHeapPresent => NativeHeap.IsPresent;

        /// <summary>The heap of <see cref="Lifetime.Persistent"/>. Set it before the first such block.</summary>
        /// <exception cref="InvalidOperationException">A block was already allocated on another heap.</exception>
        /// <exception cref="DllNotFoundException">The native library is not present.</exception>
        public static PersistentHeap PersistentHeap
        {
            get => PersistentMemory.Heap;
            set => PersistentMemory.Heap = value;
        }

        /// <summary>Whether block allocators that hold 64 MiB or more, and maps of 2 MiB or more, may request huge
        /// pages from Linux. Allocators do so as long as huge pages take less CPU time than small ones. True unless the
        /// environment variable <c>BLOCKYARD_HUGE_PAGES</c> is 0.</summary>
        /// <remarks>A change does not affect existing pages. It becomes false when the kernel does not support the
        /// request. Requests cost at most 5 % of the time that small pages would take, plus one request (0.1 ms, or 5
        /// ms when the host of a virtual machine has to find the memory). Only 64-bit Linux 5.14 or later is supported;
        /// elsewhere it has no effect.</remarks>
        public static bool HugePages
        {
            get => SlabPages.MayAsk;
            set => SlabPages.MayAsk = value;
        }

        /// <summary>The allocator of the calling thread's Temp and TempJob blocks, for a series of calls.</summary>
        public static ThreadAllocator ThisThread => new ThreadAllocator(ThreadMemory.Current.State);

        /// <summary>Prepares the calling thread, so that its first blocks cost what later ones cost. Call it while
        /// loading.</summary>
        /// <remarks>It compiles the calls, takes the thread's regions, and touches their pages: 512 KiB become
        /// resident. It takes some milliseconds in the first thread, and 0.1 ms in others.</remarks>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public static void Prepare()
        {
            for (Lifetime lifetime = Lifetime.Temp; lifetime <= Lifetime.Persistent; lifetime++)
            {
                // The second block comes from what the first call prepared.
                for (int i = 0; i < 2; i++)
                {
                    void* first = Malloc(1, 1, lifetime);
                    Free(Malloc(1, 1, lifetime), lifetime);
                    Free(first, lifetime);
                }
            }

            ThreadMemory.Current.Prepare();
        }

        /// <summary>Allocates a block of at least <paramref name="size"/> bytes.</summary>
        /// <param name="size">Bytes; 0 gives a block that may be freed and has no usable byte.</param>
        /// <param name="alignment">A power of two up to <see cref="LargestAlignment"/>.</param>
        /// <param name="lifetime">How long the block lives.</param>
        /// <exception cref="ArgumentOutOfRangeException">A negative size, an invalid alignment or an invalid
        /// lifetime.</exception>
        /// <exception cref="OutOfMemoryException">There is not enough memory. Nothing has changed.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public static void* Malloc(long size, int alignment, Lifetime lifetime)
        {
            // The common cases, inlined into the caller and written for Mono's compiler. It clears every local variable
            // at each call, so there are few; it divides the difference of two byte pointers by one, so they are
            // integers. One test finds an alignment that is no power of two or too large, and a cursor that must be
            // aligned first. TempJob comes first because it has more to do.
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
                        && size > 0 && size <= (long)thread->InlineTempLimit - start)
                    {
                        thread->LastBlock = (byte*)start;
                        thread->TempCursor = (byte*)(start + size);
                        return (void*)start;
                    }
                }
            }

#if NET8_0_OR_GREATER
            // Elsewhere in MallocSlowly, because on Mono another branch makes the others slower.
            if (lifetime == Lifetime.Persistent)
            {
                return PersistentMemory.Malloc(thread, size, alignment);
            }
#endif
            return MallocSlowly(thread, size, alignment, lifetime);
        }

        /// <summary>Frees a block. Null does nothing.</summary>
        /// <remarks>
        /// For Temp, only the thread's last block and a block that overflowed into TempJob are freed at once. Any other
        /// Temp block is freed at the end of the frame. With checks a Temp block of an ended frame is an error.
        /// </remarks>
        /// <param name="block">A live block that <see cref="Malloc"/> gave with the same lifetime.</param>
        /// <param name="lifetime">That lifetime.</param>
        /// <exception cref="InvalidOperationException">With checks: the block is not a live one of that
        /// lifetime.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public static void Free(void* block, Lifetime lifetime)
        {
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
                    // Only the last block of the region is freed before the end of the frame.
                    if (block < thread->LastBlock && block >= thread->InlineTempStart)
                    {
                        return;
                    }
                }
            }

#if NET8_0_OR_GREATER
            if (lifetime == Lifetime.Persistent)
            {
                PersistentMemory.Free(thread, block);
                return;
            }
#endif
            FreeSlowly(thread, block, lifetime);
        }

        /// <summary>Allocates items, for code that is not <c>unsafe</c>. Temp items need no free.</summary>
        /// <param name="count">The number of items, 0 or more. Their contents are unspecified.</param>
        /// <param name="lifetime">How long they live.</param>
        /// <typeparam name="T">The type of the items, which are aligned for it.</typeparam>
        /// <exception cref="ArgumentOutOfRangeException">A negative count or an invalid lifetime.</exception>
        /// <exception cref="OutOfMemoryException">There is not enough memory. Nothing has changed.</exception>
        public static Span<T> MallocSpan<T>(int count, Lifetime lifetime)
            where T : unmanaged
        {
            Bounds.CheckCount(count, nameof(count));
            return new Span<T>(Malloc((long)count * sizeof(T), RawMemory.AlignmentOf<T>(), lifetime), count);
        }

        /// <summary>Frees items.</summary>
        /// <param name="items">What <see cref="MallocSpan"/> gave with the same lifetime, from its first item
        /// on.</param>
        /// <param name="lifetime">That lifetime.</param>
        /// <typeparam name="T">The type of the items.</typeparam>
        /// <inheritdoc cref="Free(void*, Lifetime)" path="/exception"/>
        public static void Free<T>(Span<T> items, Lifetime lifetime)
            where T : unmanaged
        {
            // The reference of an empty span is that of its block too; `fixed` on the span would give null.
            fixed (T* first = &MemoryMarshal.GetReference(items))
            {
                Free(first, lifetime);
            }
        }

        /// <summary>Reports every live TempJob and Persistent block that was allocated while leak detection was
        /// on.</summary>
        /// <returns>The number of such blocks.</returns>
        public static int ReportLiveBlocks() => BlockTracker.ReportAll();

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void* MallocSlowly(ThreadState* thread, long size, int alignment, Lifetime lifetime)
        {
            if (lifetime == Lifetime.Persistent)
            {
                return PersistentMemory.Malloc(thread, size, alignment);
            }

            size = RawMemory.CheckedSize(size, alignment);
            return lifetime == Lifetime.TempJob ? ThreadMemory.TakeJob(thread, size, alignment)
                : lifetime == Lifetime.Temp ? ThreadMemory.TakeTemp(thread, size, alignment)
                : throw new ArgumentOutOfRangeException(nameof(lifetime), lifetime, "Not a lifetime.");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void FreeSlowly(ThreadState* thread, void* block, Lifetime lifetime)
        {
            if (block == null)
            {
                return;
            }

            if (lifetime == Lifetime.Persistent)
            {
                PersistentMemory.Free(thread, block);
            }
            else if (lifetime == Lifetime.TempJob)
            {
                ThreadMemory.GiveJob(thread, (byte*)block);
            }
            else if (lifetime == Lifetime.Temp)
            {
                ThreadMemory.GiveTemp(thread, (byte*)block);
            }
            else
            {
                throw new ArgumentOutOfRangeException(nameof(lifetime), lifetime, "Not a lifetime.");
            }
        }
    }
}
