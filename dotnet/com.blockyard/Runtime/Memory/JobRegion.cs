using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
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
    /// blocks. The thread that brings the count to zero returns the region to the pool. The pool gives back what no
    /// thread has needed for <see cref="FramesBetweenReturns"/> frames, and a region for each thread that has ended.
    /// </remarks>
    [StructLayout(LayoutKind.Explicit, Size = HeaderSize)]
    internal unsafe struct JobRegion
    {
        internal const int Size = ThreadState.JobRegionSize;
        internal const int HeaderSize = 128;

        /// <summary>A block that needs more than this gets a region of its own.</summary>
        internal const int LargestShared = Size / 4;

        /// <summary>Frames after which the pool gives back what was not needed meanwhile: one second.</summary>
        internal const int FramesBetweenReturns = 64;

        /// <summary>Regions that stay in the pool when threads end: 4 MiB.</summary>
        private const int KeptForThreads = 16;

        /// <summary>The most regions that one call gives back, because each takes a system call.</summary>
        private const int MostAtOnce = 64;

        private const int Bias = 1 << 30;
        private const ulong Mask = ~((ulong)Size - 1);

        // The fields that are set once and the word that other threads count in lie on separate cache lines.
        [FieldOffset(12)]
        internal bool IsTracked;

        /// <summary>Whether it is for many blocks. Others are freed with their only one.</summary>
        [FieldOffset(13)]
        internal bool IsShared;

        /// <summary>The runtime's block that it lies in; null for pages of the system.</summary>
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

        private static volatile bool isAnyTracked;
        private static JobRegion* pool;
        private static int pooled;
        private static int fewestPooled;
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
                JobRegion* region = pool == null ? New() : TakePooled();
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

        /// <summary>Gives pooled regions back to the system that no thread has needed since the last call.</summary>
        internal static void GiveBackUnneeded()
        {
            lock (Gate)
            {
                GiveBack(Math.Min(fewestPooled, MostAtOnce), keep: 0);
                fewestPooled = pooled;
            }
        }

        /// <summary>Gives pooled regions back to the system, one for each thread that has ended.</summary>
        internal static void GiveBackOfThreads(int threads)
        {
            lock (Gate)
            {
                GiveBack(threads, KeptForThreads);
            }
        }

        /// <summary>Gives all pooled regions back to the system, before the program's domain ends.</summary>
        internal static void GiveBackAll()
        {
            lock (Gate)
            {
                GiveBack(int.MaxValue, keep: 0);
            }
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
                    isAnyTracked = true;
                    Track(region, true);
                }
                else if (isAnyTracked)
                {
                    Track(region, false);
                }
            }
        }

        /// <summary>Whether it is a region that is in use and whose blocks have headers. It may be any
        /// address.</summary>
        internal static bool IsTrackedRegion(JobRegion* region)
        {
            lock (Gate)
            {
                return Tracked.Regions.Contains((IntPtr)region);
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
                foreach (IntPtr region in Tracked.Regions)
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
                if (isAnyTracked)
                {
                    Track(region, false);
                }

                if (region->IsShared)
                {
                    region->Next = pool;
                    pool = region;
                    pooled++;
                    return;
                }
            }

            Free(region);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Track(JobRegion* region, bool isTracked)
        {
            if (isTracked)
            {
                Tracked.Regions.Add((IntPtr)region);
            }
            else
            {
                Tracked.Regions.Remove((IntPtr)region);
            }
        }

        private static JobRegion* TakePooled()
        {
            JobRegion* region = pool;
            pool = region->Next;
            pooled--;
            fewestPooled = Math.Min(fewestPooled, pooled);
            return region;
        }

        private static void GiveBack(int most, int keep)
        {
            for (int i = 0; i < most && pooled > keep; i++)
            {
                Free(TakePooled());
            }
        }

        /// <summary>The first region comes from the runtime, because the first use of the system's calls takes
        /// longer.</summary>
        private static JobRegion* New()
        {
            byte* start = held > 0 && SlabMemory.IsAvailable ? SlabMemory.Take(Size, Size) : null;
            byte* raw = start == null ? RawMemory.Allocate(2 * Size) : null;
            JobRegion* region = (JobRegion*)(start == null ? RawMemory.Align(raw, Size) : start);
            *region = new JobRegion { Raw = raw, Bytes = start == null ? 2 * Size : Size, IsShared = true };
            Interlocked.Add(ref held, region->Bytes);
            return region;
        }

        private static void Free(JobRegion* region)
        {
            Interlocked.Add(ref held, -region->Bytes);
            if (region->Raw == null)
            {
                SlabMemory.Give((byte*)region, Size);
            }
            else
            {
                RawMemory.Free(region->Raw);
            }
        }

        /// <summary>Apart, as the tables of <see cref="BlockTracker"/>.</summary>
        private static class Tracked
        {
            /// <summary>The regions whose blocks have headers.</summary>
            internal static readonly HashSet<IntPtr> Regions = new HashSet<IntPtr>();
        }
    }
}
