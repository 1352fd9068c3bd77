using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>The header of a region for TempJob blocks. The blocks follow it.</summary>
    /// <remarks>
    /// A region lies at a multiple of its size, so masking a block's address gives its region. One thread owns a region
    /// and counts its own allocations and frees without atomics, in <see cref="ThreadState.JobLive"/>. Other threads
    /// count their frees in <see cref="Remote"/>, which starts at <see cref="Bias"/> so that it cannot reach zero while
    /// the region is owned. When the owner retires the region, it subtracts the bias and adds the number of live
    /// blocks. The thread that brings the count to zero returns the region to the pool.
    /// </remarks>
    [StructLayout(LayoutKind.Explicit, Size = HeaderSize)]
    internal unsafe struct JobRegion
    {
        internal const int Size = ThreadState.JobRegionSize;
        internal const int HeaderSize = 128;

        /// <summary>A block that needs more than this gets a region of its own.</summary>
        internal const int LargestShared = Size / 4;

        private const int RegionsPerSlab = 16;
        private const int Bias = 1 << 30;
        private const ulong Mask = ~((ulong)Size - 1);

        // The fields that are set once and the word that other threads count in lie on separate cache lines.
        [FieldOffset(12)]
        internal bool IsTracked;
        [FieldOffset(16)]
        internal byte* Raw;
        [FieldOffset(24)]
        internal JobRegion* Next;
        [FieldOffset(32)]
        internal long Bytes;

        /// <summary>The header of the newest block, where blocks are tracked.</summary>
        [FieldOffset(40)]
        internal JobBlock* Last;
        [FieldOffset(64)]
        internal int Remote;

        private static readonly object Gate = new object();

        /// <summary>The regions whose blocks have headers.</summary>
        private static readonly HashSet<IntPtr> Tracked = new HashSet<IntPtr>();
        private static volatile bool isAnyTracked;
        private static JobRegion* pool;
        private static long held;

        /// <summary>Bytes that all regions hold, including pooled ones.</summary>
        internal static long BytesHeld => Interlocked.Read(ref held);

        internal static JobRegion* Of(byte* block) => (JobRegion*)((ulong)block & Mask);

        /// <summary>Whether a block that is freed may have a header.</summary>
        internal static bool IsAnyTracked => isAnyTracked;

        /// <summary>A region for one owner, from the pool or from the runtime.</summary>
        internal static JobRegion* Take(bool isTracked)
        {
            lock (Gate)
            {
                if (pool == null)
                {
                    AddSlab();
                }

                JobRegion* region = pool;
                pool = region->Next;
                Open(region, isTracked);
                return region;
            }
        }

        /// <summary>A region with a single large block. Freeing the block frees the region.</summary>
        internal static byte* TakeLarge(long size, int alignment, bool isTracked)
        {
            // The first block's header fits into the end of the region's, which no field uses.
            long bytes = size > long.MaxValue / 2 ? long.MaxValue : size + HeaderSize + alignment + Size;
            byte* raw = RawMemory.Allocate(bytes);
            JobRegion* region = (JobRegion*)RawMemory.Align(raw, Size);
            *region = new JobRegion { Raw = raw, Bytes = bytes };
            Open(region, isTracked);
            region->Remote = 1;
            Interlocked.Add(ref held, bytes);
            return RawMemory.Align((byte*)region + HeaderSize, alignment);
        }

        /// <summary>Makes a region empty.</summary>
        internal static void Open(JobRegion* region, bool isTracked)
        {
            // With the lock, because a report may be going over the region's blocks.
            lock (Gate)
            {
                region->Remote = Bias;
                region->Last = null;
                region->IsTracked = isTracked;
                if (isTracked)
                {
                    Tracked.Add((IntPtr)region);
                    isAnyTracked = true;
                }
                else
                {
                    Tracked.Remove((IntPtr)region);
                }
            }
        }

        /// <summary>Whether it is a region that is in use and whose blocks have headers. It may be any
        /// address.</summary>
        internal static bool IsTrackedRegion(JobRegion* region)
        {
            lock (Gate)
            {
                return Tracked.Contains((IntPtr)region);
            }
        }

        /// <summary>Finds the live blocks that leak detection knows.</summary>
        /// <param name="blocks">Gets the blocks.</param>
        /// <param name="lastFrame">Only blocks that were allocated in this frame or before.</param>
        /// <param name="once">Whether to leave out those that an earlier call found with this parameter.</param>
        internal static void FindLive(List<LiveBlock> blocks, long lastFrame, bool once)
        {
            lock (Gate)
            {
                foreach (IntPtr region in Tracked)
                {
                    for (JobBlock* one = ((JobRegion*)region)->Last; one != null; one = one->Previous)
                    {
                        if (one->IsLive && one->IsForReports && one->Frame <= lastFrame && !(once && one->IsReported))
                        {
                            one->IsReported |= once;
                            blocks.Add(new LiveBlock((ulong)(one + 1), one->Size, one->Frame, Lifetime.TempJob));
                        }
                    }
                }
            }
        }

        /// <summary>Whether all blocks are freed. Only the owner may ask.</summary>
        /// <param name="region">The region.</param>
        /// <param name="live">Its blocks, minus those that the owner freed.</param>
        internal static bool IsEmpty(JobRegion* region, long live) => live == Bias - Volatile.Read(ref region->Remote);

        /// <summary>Ends the ownership. Called by the owner, or by the finalizer after the owner's thread has
        /// ended.</summary>
        /// <param name="region">The region.</param>
        /// <param name="live">Its blocks, minus those that the owner freed.</param>
        internal static void Retire(JobRegion* region, long live)
        {
            if (Interlocked.Add(ref region->Remote, (int)live - Bias) == 0)
            {
                Recycle(region);
            }
        }

        /// <summary>Counts a free by a thread that does not own the region.</summary>
        internal static void FreeRemotely(JobRegion* region)
        {
            if (Interlocked.Decrement(ref region->Remote) == 0)
            {
                Recycle(region);
            }
        }

        private static void Recycle(JobRegion* region)
        {
            lock (Gate)
            {
                Tracked.Remove((IntPtr)region);
                if (region->Raw == null)
                {
                    region->Next = pool;
                    pool = region;
                    return;
                }
            }

            Interlocked.Add(ref held, -region->Bytes);
            RawMemory.Free(region->Raw);
        }

        private static void AddSlab()
        {
            const long Bytes = (long)Size * (RegionsPerSlab + 1);
            byte* first = RawMemory.Align(RawMemory.Allocate(Bytes), Size);
            Interlocked.Add(ref held, Bytes);
            for (int i = RegionsPerSlab - 1; i >= 0; i--)
            {
                JobRegion* region = (JobRegion*)(first + ((long)i * Size));
                *region = new JobRegion { Next = pool };
                pool = region;
            }
        }
    }
}
