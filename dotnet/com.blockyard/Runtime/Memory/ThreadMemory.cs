#pragma warning disable CS0162 // checks are a constant in Unity
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>One thread's Temp region and the region that its TempJob blocks come from.</summary>
    /// <remarks>
    /// Only its thread uses it. After the thread has ended, everything is freed when more threads start, after some
    /// frames, or by the finalizer.
    /// <see cref="UnmanagedMemory"/> contains the inlined fast paths, which use <see cref="ThreadState"/>.
    /// </remarks>
    internal sealed unsafe class ThreadMemory
    {
        private static readonly object Gate = new object();
        private static readonly List<WeakReference<ThreadMemory>> All = new List<WeakReference<ThreadMemory>>();

        /// <summary>Bytes of persistent blocks that threads without a state freed, negated.</summary>
        internal static long PersistentBytesOfOthers;

        /// <summary>The number of threads at which to look for ended ones again. It is twice that of the last look, so
        /// that starting a thread costs the same however many there are.</summary>
        private const int FewestToLook = 4;
        private static int lookAt = FewestToLook;

        /// <summary>The counts of threads that have ended.</summary>
        private static AllocationCounts.Totals ended;

        [ThreadStatic]
        private static ThreadMemory? current;

        private readonly ThreadState* state;
        private readonly Thread thread;
        private List<IntPtr>? overflow;
        private long overflowBytes;
        private LifetimeCounters counters;

        private ThreadMemory()
        {
            thread = Thread.CurrentThread;
            state = (ThreadState*)RawMemory.Allocate(sizeof(ThreadState));
            *state = default;
            counters.Histogram = new long[LifetimeStatistics.Buckets];
#if NET8_0_OR_GREATER
            MemoryEvents.Starter.Start();
#endif
            bool look;
            lock (Gate)
            {
                All.Add(new WeakReference<ThreadMemory>(this));
                look = All.Count >= lookAt;
            }

            if (look)
            {
                FreeEnded();
            }
        }

        /// <summary>Runs after the thread has ended, because only the thread holds this object, and when the domain
        /// ends.</summary>
        ~ThreadMemory()
        {
            bool isUnloading = AppDomain.CurrentDomain.IsFinalizingForUnload();
            if ((Environment.HasShutdownStarted && !isUnloading) || state == ThreadState.Current)
            {
                // The process ends, or this is the state of the finalizers' own thread, which others may still use.
                return;
            }

            lock (Gate)
            {
                AddTo(ref ended);
            }

            Release();
            if (isUnloading)
            {
                JobRegion.GiveBackAll();
            }
            else
            {
                JobRegion.GiveBackOfThreads(1);
            }
        }

        internal static ThreadMemory Current => current ?? Start();

        internal ThreadState* State => state;

        /// <summary>The cells of the containers in Temp memory.</summary>
        internal SafetyCells Cells { get; } = new SafetyCells();

        internal LifetimeStatistics Statistics =>
            new LifetimeStatistics(Name, counters, state->TempLimit - state->TempStart, Used);

        private string Name => thread.Name ?? "thread " + thread.ManagedThreadId;

        private bool HasOverflow => overflow != null && overflow.Count > 0;

        private long Used => state->TempCursor - state->TempStart + overflowBytes;

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

        /// <summary>Frees the memory of threads that have ended. O(threads).</summary>
        internal static void FreeEnded()
        {
            List<ThreadMemory>? found = null;
            lock (Gate)
            {
                int kept = 0;
                for (int i = 0; i < All.Count; i++)
                {
                    if (!All[i].TryGetTarget(out ThreadMemory? one))
                    {
                        continue;
                    }

                    if (one.thread.IsAlive)
                    {
                        All[kept++] = All[i];
                        continue;
                    }

                    found ??= new List<ThreadMemory>();
                    found.Add(one);
                    one.AddTo(ref ended);
                }

                All.RemoveRange(kept, All.Count - kept);
                lookAt = Math.Max(FewestToLook, kept * 2);
            }

            if (found != null)
            {
                foreach (ThreadMemory one in found)
                {
                    GC.SuppressFinalize(one);
                    one.Release();
                }

                JobRegion.GiveBackOfThreads(found.Count);
            }
        }

        /// <summary>The counts of all threads, of those that have ended too.</summary>
        internal static AllocationCounts.Totals TotalsOfAll()
        {
            lock (Gate)
            {
                AllocationCounts.Totals totals = ended;
                totals.PersistentBytes += Interlocked.Read(ref PersistentBytesOfOthers);
                foreach (WeakReference<ThreadMemory> reference in All)
                {
                    if (reference.TryGetTarget(out ThreadMemory? thread))
                    {
                        thread.AddTo(ref totals);
                        totals.TempBytes += thread.Used;
                        GC.KeepAlive(thread);
                    }
                }

                return totals;
            }
        }

        /// <summary>Makes every thread's inlined code use the slow paths, which track and count blocks.</summary>
        internal static void CloseInlineCode()
        {
            lock (Gate)
            {
                foreach (WeakReference<ThreadMemory> reference in All)
                {
                    if (reference.TryGetTarget(out ThreadMemory? thread))
                    {
                        thread.state->InlineTempLimit = null;
                        thread.state->InlineJobLimit = null;
                        thread.state->InlineJob = ThreadState.Closed;
                        GC.KeepAlive(thread);
                    }
                }
            }
        }

        /// <remarks>This method, <see cref="TakeJob"/>, <see cref="GiveTemp"/> and <see cref="GiveJob"/> get the
        /// thread's state from their callers, because a lookup costs more than the rest; null before the thread's first
        /// allocation.</remarks>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void* TakeTemp(ThreadState* state, long size, int alignment)
        {
            if (state == null)
            {
                state = Current.state;
            }

            byte* start = (byte*)(((ulong)state->TempCursor + ((uint)alignment - 1)) & ~((ulong)(uint)alignment - 1));
            if (size > (long)state->TempLimit - (long)start)
            {
                return TakeTempSlowly(size, alignment);
            }

            state->LastBlock = start;
            state->TempCursor = start + size;
            state->TempAllocations++;
            if (Checks.AreOn)
            {
                RawMemory.Fill(start, size, 0xCD);
            }

            return start;
        }

        /// <summary>Makes the thread's last Temp block larger in place.</summary>
        /// <returns>False, without any change, when it is not the last block or the region has no room.</returns>
        internal bool TryExtendTemp(byte* block, long size)
        {
            byte* end = state->TempCursor;
            if (block != state->LastBlock || block >= end || size > (long)state->TempLimit - (long)block)
            {
                return false;
            }

            state->TempCursor = block + size > end ? block + size : end;
            if (Checks.AreOn)
            {
                RawMemory.Fill(end, state->TempCursor - end, 0xCD);
            }

            return true;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void GiveTemp(ThreadState* state, byte* block)
        {
            if (state == null)
            {
                state = Current.state;
            }

            if (block < state->TempStart || block >= state->TempCursor)
            {
                GiveTempSlowly(block);
            }
            else if (block == state->LastBlock)
            {
                state->PeakCursor = state->TempCursor > state->PeakCursor ? state->TempCursor : state->PeakCursor;
                state->TempCursor = block;
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void* TakeJob(ThreadState* state, long size, int alignment)
        {
            if (state == null)
            {
                state = Current.state;
            }

            byte* start = (byte*)(((ulong)state->JobCursor + ((uint)alignment - 1)) & ~((ulong)(uint)alignment - 1));
            if (size > (long)state->JobLimit - (long)start || state->InlineJobLimit == null)
            {
                return TakeJobSlowly(state, size, alignment);
            }

            state->JobCursor = start + size;
            state->JobLive++;
            state->TempJobAllocations++;
            return start;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        internal static void GiveJob(ThreadState* state, byte* block)
        {
            if (state == null)
            {
                state = Current.state;
            }

            JobRegion* region = JobRegion.Of(block);
            if (Checks.AreOn || JobRegion.IsAnyTracked)
            {
                if (region == state->Job && region->IsTracked)
                {
                    // Its headers must stay, so the whole region is used before it starts again.
                    BlockTracker.RemoveJob(block);
                    state->JobLive--;
                    return;
                }

                // Any other than the thread's own region may not exist, so it is looked up first.
                if (region != state->Job && JobRegion.IsTrackedRegion(region))
                {
                    BlockTracker.RemoveJob(block);
                }
                else if (Checks.AreOn)
                {
                    BlockTracker.ThrowNotLive(Lifetime.TempJob);
                }
            }

            GiveJobTo(state, region);
        }

        /// <summary>Whether a block is one of this frame.</summary>
        internal bool HasTemp(byte* block) => (block >= state->TempStart && block < state->TempCursor)
            || (overflow != null && overflow.Contains((IntPtr)block));

        /// <returns>The bytes of Temp that the thread used in the frame.</returns>
        internal long EndFrame()
        {
            state->PeakCursor = state->TempCursor > state->PeakCursor ? state->TempCursor : state->PeakCursor;
            long used = state->PeakCursor - state->TempStart + overflowBytes;
            counters.EndFrame(used);
            ReleaseOverflow();
            Cells.EndAll();
            OpenInlineTemp();
            if (state->TempStart == null)
            {
                return used;
            }

            if (Checks.AreOn)
            {
                RawMemory.Fill(state->TempStart, state->PeakCursor - state->TempStart, 0xDD);
            }

            state->TempCursor = state->TempStart;
            state->PeakCursor = state->TempStart;
            state->LastBlock = state->TempStart;
            long capacity = state->TempLimit - state->TempStart;
            if (used > capacity && capacity < FrameMemory.TempCapacityLimit)
            {
                SetCapacity(Math.Min(FrameMemory.TempCapacityLimit, PowerOfTwoFrom(used)));
            }

            return used;
        }

        /// <summary>Compiles the end of a frame, and touches the pages that no block of the thread uses.</summary>
        internal void Prepare()
        {
            if (state->TempCursor == state->TempStart && !HasOverflow)
            {
                EndFrame();
            }

            Touch(state->TempCursor, state->TempLimit);
            Touch(state->JobCursor, state->JobLimit);
        }

        /// <summary>Replaces the region. It must hold no block of this frame.</summary>
        internal void SetCapacity(long bytes)
        {
            if (state->TempCursor != state->TempStart || HasOverflow)
            {
                throw new InvalidOperationException(
                    "The Temp region holds blocks of this frame; resize it between frames.");
            }

            byte* fresh = RawMemory.Allocate(bytes);
            if (state->TempStart != null)
            {
                RawMemory.Free(state->TempStart);
            }

            state->TempStart = fresh;
            state->TempCursor = fresh;
            state->PeakCursor = fresh;
            state->TempLimit = fresh + bytes;
            state->InlineTempStart = Checks.AreOn ? (byte*)ulong.MaxValue : fresh;
            state->InlineTempLimit = null;
            state->LastBlock = fresh;
            OpenInlineTemp();
        }

        private static void Touch(byte* at, byte* end)
        {
            for (; at < end; at += SlabMemory.SmallPage)
            {
                *at = 0;
            }
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
            ThreadState.Current = current.state;
            return current;
        }

        /// <remarks>This method and <see cref="GiveTempSlowly"/> look up the thread first: .NET looks it up slowly in a
        /// branch that was not taken while it counted branches, which is for thirty calls.</remarks>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void* TakeTempSlowly(long size, int alignment)
        {
            ThreadMemory thread = Current;
            ThreadState* state = thread.state;
            if (state->TempStart == null)
            {
                thread.SetCapacity(FrameMemory.TempCapacity);
                if (size <= state->TempLimit - RawMemory.Align(state->TempCursor, alignment))
                {
                    return TakeTemp(state, size, alignment);
                }
            }

            // Makes room in the list first, so that a failure changes nothing.
            List<IntPtr> overflow = thread.overflow ??= new List<IntPtr>(16);
            if (overflow.Count == overflow.Capacity)
            {
                overflow.Capacity *= 2;
            }

            byte* block = TakeJobWith(state, size, alignment, header: 0);
            state->TempAllocations++;
            if (size > state->TempLimit - state->TempStart)
            {
                thread.counters.OverflowTooLarge++;
            }
            else
            {
                thread.counters.OverflowFull++;
            }

            overflow.Add((IntPtr)block);
            thread.overflowBytes += size;
            return block;
        }

        /// <summary>Frees a block that is not one of the frame in the thread's region.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void GiveTempSlowly(byte* block)
        {
            ThreadMemory thread = Current;
            ThreadState* state = thread.state;
            if (block >= state->TempStart && block < state->TempLimit)
            {
                if (Checks.AreOn)
                {
                    throw new InvalidOperationException(
                        "The Temp block belongs to a frame that has ended, or was already freed.");
                }

                return;
            }

            int index = thread.overflow == null ? -1 : thread.overflow.LastIndexOf((IntPtr)block);
            if (index >= 0)
            {
                thread.overflow!.RemoveAt(index);
                GiveJobTo(state, JobRegion.Of(block));
                return;
            }

            if (Checks.AreOn)
            {
                throw new InvalidOperationException("The block is not a Temp block of this thread's current frame.");
            }
        }

        /// <summary>Frees everything, after the thread has ended and this is out of the list.</summary>
        private void Release()
        {
            ReleaseOverflow();
            if (state->TempStart != null)
            {
                RawMemory.Free(state->TempStart);
            }

            if (state->Job != null)
            {
                JobRegion.Retire(state->Job, state->JobLive);
            }

            Cells.EndAll();
            PersistentMemory.EmptyCache(state);
            RawMemory.Free((byte*)state);
        }

        private void ReleaseOverflow()
        {
            for (int i = 0; HasOverflow && i < overflow!.Count; i++)
            {
                GiveJobTo(state, JobRegion.Of((byte*)overflow[i]));
            }

            overflow?.Clear();
            overflowBytes = 0;
        }

        private void AddTo(ref AllocationCounts.Totals totals)
        {
            totals.TempAllocations += state->TempAllocations;
            totals.TempJobAllocations += state->TempJobAllocations;
            totals.PersistentAllocations += state->PersistentAllocations;
            totals.PersistentBytes += state->PersistentBytes;
        }

        /// <summary>Lets inlined code allocate in the Temp region, unless its blocks are checked or counted.</summary>
        private void OpenInlineTemp()
        {
            if (Checks.AreOn || AllocationCounts.AreOn || state->InlineTempLimit == state->TempLimit)
            {
                return;
            }

            lock (Gate)
            {
                state->InlineTempLimit = AllocationCounts.AreOn ? null : state->TempLimit;
            }
        }

        /// <summary>Lets inlined code allocate and free in the current region, if its blocks need no header.</summary>
        private static void OpenInlineJob(ThreadState* state)
        {
            if (BlockTracker.IsOn || AllocationCounts.AreOn
                || (state->InlineJobLimit == state->JobLimit && state->InlineJob == state->Job))
            {
                return;
            }

            lock (Gate)
            {
                if (!BlockTracker.IsOn && !AllocationCounts.AreOn && state->Job != null && !state->Job->IsTracked)
                {
                    state->InlineJobLimit = state->JobLimit;
                    state->InlineJob = state->Job;
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void* TakeJobSlowly(ThreadState* state, long size, int alignment)
        {
            bool isTracked = BlockTracker.IsOn;
            if (state->Job != null && state->Job->IsTracked != isTracked)
            {
                NextRegion(state, isTracked);
            }

            byte* block;
            if (isTracked)
            {
                block = TakeJobWith(state, size, Math.Max(alignment, sizeof(void*)), sizeof(JobBlock));
                BlockTracker.AddJob(JobRegion.Of(block), block, size);
            }
            else
            {
                block = TakeJobWith(state, size, alignment, header: 0);
                OpenInlineJob(state);
            }

            state->TempJobAllocations++;
            return block;
        }

        /// <summary>Takes a block with room for a header before it.</summary>
        private static byte* TakeJobWith(ThreadState* state, long size, int alignment, int header)
        {
            if (size > JobRegion.LargestShared - alignment - header)
            {
                return JobRegion.TakeLarge(size, alignment, header > 0);
            }

            byte* start = RawMemory.Align(state->JobCursor + header, alignment);
            if (size > state->JobLimit - start)
            {
                NextRegion(state, BlockTracker.IsOn);
                start = RawMemory.Align(state->JobCursor + header, alignment);
            }

            state->JobCursor = start + size;
            state->JobLive++;
            return start;
        }

        private static void GiveJobTo(ThreadState* state, JobRegion* region)
        {
            if (region != state->Job)
            {
                JobRegion.FreeRemotely(region);
            }
            else if (--state->JobLive == 0 && !region->IsTracked)
            {
                // This thread freed all blocks: start again at the beginning, where the memory is in the cache. Headers
                // must stay, so there the whole region is used first.
                state->JobCursor = (byte*)region + JobRegion.HeaderSize;
            }

            OpenInlineJob(state);
        }

        private static void NextRegion(ThreadState* state, bool isTracked)
        {
            if (state->Job != null && JobRegion.IsEmpty(state->Job, state->JobLive))
            {
                JobRegion.Open(state->Job, isTracked);
            }
            else
            {
                JobRegion* next = JobRegion.Take(isTracked);
                if (state->Job != null)
                {
                    JobRegion.Retire(state->Job, state->JobLive);
                }

                state->Job = next;
            }

            state->JobLive = 0;
            state->JobCursor = (byte*)state->Job + JobRegion.HeaderSize;
            state->JobLimit = (byte*)state->Job + JobRegion.Size;
            state->InlineJobLimit = null;
            state->InlineJob = ThreadState.Closed;
            OpenInlineJob(state);
        }
    }
}
