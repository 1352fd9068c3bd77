using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>What one thread owns: its Temp region and the region that its TempJob blocks come from.</summary>
    /// <remarks>Used by its thread only; the finalizer gives all back after the thread has ended.</remarks>
    internal sealed unsafe class ThreadMemory
    {
        private static readonly object Gate = new object();
        private static readonly List<WeakReference<ThreadMemory>> All = new List<WeakReference<ThreadMemory>>();
        private static int lastId;

        [ThreadStatic]
        private static ThreadMemory? current;

        private readonly List<IntPtr> overflow = new List<IntPtr>(16);
        private readonly int id = Interlocked.Increment(ref lastId);
        private readonly string name;
        private byte* tempStart;
        private byte* tempCursor;
        private byte* tempLimit;
        private byte* lastBlock;
        private byte* beforeLast;
        private byte* peakCursor;
        private byte* jobCursor;
        private byte* jobLimit;
        private JobRegion* job;
        private long overflowBytes;
        private LifetimeCounters counters;

        private ThreadMemory()
        {
            Thread thread = Thread.CurrentThread;
            name = thread.Name ?? "thread " + thread.ManagedThreadId;
            FrameCell = SafetyCell.Take();
            counters.Histogram = new long[LifetimeStatistics.Buckets];
            lock (Gate)
            {
                All.RemoveAll(reference => !reference.TryGetTarget(out _));
                All.Add(new WeakReference<ThreadMemory>(this));
            }
        }

        /// <summary>Runs after the thread has ended: nobody else holds this object.</summary>
        ~ThreadMemory()
        {
            if (Environment.HasShutdownStarted)
            {
                return;
            }

            ReleaseOverflow();
            if (tempStart != null)
            {
                RawMemory.Free(tempStart);
            }

            if (job != null)
            {
                JobRegion.Retire(job);
            }

            SafetyCell.Give(FrameCell);
        }

        internal static ThreadMemory Current => current ?? Start();

        /// <summary>Counts the thread's frames, for containers that look whether theirs has ended.</summary>
        internal uint* FrameCell { get; }

        internal LifetimeStatistics Statistics =>
            new LifetimeStatistics(name, counters, tempLimit - tempStart, Used);

        private long Used => tempCursor - tempStart + overflowBytes;

        internal static List<LifetimeStatistics> StatisticsOfAll()
        {
            List<LifetimeStatistics> all = new List<LifetimeStatistics>();
            lock (Gate)
            {
                foreach (WeakReference<ThreadMemory> reference in All)
                {
                    if (reference.TryGetTarget(out ThreadMemory? thread))
                    {
                        all.Add(thread.Statistics);
                    }
                }
            }

            return all;
        }

        internal void* TakeTemp(long size, int alignment)
        {
            byte* cursor = tempCursor;
            byte* start = (byte*)(((ulong)cursor + ((uint)alignment - 1)) & ~((ulong)(uint)alignment - 1));
            if (size > tempLimit - start)
            {
                return TakeTempSlowly(size, alignment);
            }

            beforeLast = cursor;
            lastBlock = start;
            tempCursor = start + size;
#if !BLOCKYARD_RELEASE
            RawMemory.Fill(start, size, 0xCD);
#endif
            return start;
        }

        internal void GiveTemp(byte* block)
        {
            if (block == lastBlock)
            {
                peakCursor = tempCursor > peakCursor ? tempCursor : peakCursor;
                tempCursor = beforeLast;
                lastBlock = null;
            }
            else
            {
                GiveTempSlowly(block);
            }
        }

        internal void* TakeJob(long size, int alignment)
        {
            byte* start = (byte*)(((ulong)jobCursor + ((uint)alignment - 1)) & ~((ulong)(uint)alignment - 1));
            if (size > jobLimit - start || !LeakDetection.IsOff)
            {
                return TakeJobSlowly(size, alignment);
            }

            jobCursor = start + size;
            job->Allocated++;
            return start;
        }

        internal void GiveJob(byte* block)
        {
            JobRegion* region = JobRegion.Of(block);
#if !BLOCKYARD_RELEASE
            if (region->Magic != JobRegion.LiveMagic)
            {
                throw new InvalidOperationException("The block is not a live TempJob block.");
            }
#endif
            if (BlockTracker.Tracked > 0)
            {
                BlockTracker.Remove(block);
            }

            if (region->Owner != id)
            {
                JobRegion.FreeRemotely(region);
            }
            else if (++region->Freed == region->Allocated)
            {
                // All blocks are back and none was freed remotely: bump from the start again, in warm memory.
                region->Freed = 0;
                region->Allocated = 0;
                jobCursor = (byte*)region + JobRegion.HeaderSize;
            }
        }

        internal void EndFrame()
        {
            peakCursor = tempCursor > peakCursor ? tempCursor : peakCursor;
            long used = peakCursor - tempStart + overflowBytes;
            counters.EndFrame(used);
            ReleaseOverflow();
            (*FrameCell)++;
            if (tempStart == null)
            {
                return;
            }

#if !BLOCKYARD_RELEASE
            RawMemory.Fill(tempStart, peakCursor - tempStart, 0xDD);
#endif
            tempCursor = tempStart;
            peakCursor = tempStart;
            lastBlock = null;
            long capacity = tempLimit - tempStart;
            if (used > capacity && capacity < FrameMemory.TempCapacityLimit)
            {
                SetCapacity(Math.Min(FrameMemory.TempCapacityLimit, PowerOfTwoFrom(used)));
            }
        }

        /// <summary>Replaces the region, which must hold no block of this frame.</summary>
        internal void SetCapacity(long bytes)
        {
            if (tempCursor != tempStart || overflow.Count > 0)
            {
                throw new InvalidOperationException("The Temp region is resized between frames, when it holds no block.");
            }

            byte* fresh = RawMemory.Allocate(bytes);
            if (tempStart != null)
            {
                RawMemory.Free(tempStart);
            }

            tempStart = fresh;
            tempCursor = fresh;
            peakCursor = fresh;
            tempLimit = fresh + bytes;
            lastBlock = null;
        }

        private static long PowerOfTwoFrom(long bytes)
        {
            long power = 1024;
            while (power < bytes)
            {
                power *= 2;
            }

            return power;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ThreadMemory Start()
        {
            current = new ThreadMemory();
            return current;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private void* TakeTempSlowly(long size, int alignment)
        {
            if (tempStart == null)
            {
                SetCapacity(FrameMemory.TempCapacity);
                if (size <= tempLimit - RawMemory.Align(tempCursor, alignment))
                {
                    return TakeTemp(size, alignment);
                }
            }

            // Room in the list before the block, so that a failure leaves nothing behind.
            if (overflow.Count == overflow.Capacity)
            {
                overflow.Capacity *= 2;
            }

            byte* block = (byte*)TakeJobUntracked(size, alignment);
            if (size > tempLimit - tempStart)
            {
                counters.OverflowTooLarge++;
            }
            else
            {
                counters.OverflowFull++;
            }

            overflow.Add((IntPtr)block);
            overflowBytes += size;
            return block;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private void GiveTempSlowly(byte* block)
        {
            if (block >= tempStart && block < tempLimit)
            {
#if !BLOCKYARD_RELEASE
                if (block >= tempCursor)
                {
                    throw new InvalidOperationException("The Temp block belongs to a frame that has ended, or was already freed.");
                }
#endif
                return;
            }

            int index = overflow.LastIndexOf((IntPtr)block);
            if (index >= 0)
            {
                overflow.RemoveAt(index);
                GiveJob(block);
                return;
            }

#if !BLOCKYARD_RELEASE
            throw new InvalidOperationException("The block is not a Temp block of this thread's current frame.");
#endif
        }

        private void ReleaseOverflow()
        {
            for (int i = 0; i < overflow.Count; i++)
            {
                GiveJob((byte*)overflow[i]);
            }

            overflow.Clear();
            overflowBytes = 0;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private void* TakeJobSlowly(long size, int alignment)
        {
            void* block = TakeJobUntracked(size, alignment);
            if (!LeakDetection.IsOff)
            {
                BlockTracker.Add(block, size, Lifetime.TempJob);
            }

            return block;
        }

        private void* TakeJobUntracked(long size, int alignment)
        {
            if (size > JobRegion.LargestShared - alignment)
            {
                return JobRegion.TakeLarge(size, alignment);
            }

            byte* start = RawMemory.Align(jobCursor, alignment);
            if (size > jobLimit - start)
            {
                NextRegion();
                start = RawMemory.Align(jobCursor, alignment);
            }

            jobCursor = start + size;
            job->Allocated++;
            return start;
        }

        private void NextRegion()
        {
            if (job != null && JobRegion.IsEmpty(job))
            {
                JobRegion.Open(job, id);
            }
            else
            {
                JobRegion* next = JobRegion.Take(id);
                if (job != null)
                {
                    JobRegion.Retire(job);
                }

                job = next;
            }

            jobCursor = (byte*)job + JobRegion.HeaderSize;
            jobLimit = (byte*)job + JobRegion.Size;
        }
    }
}
