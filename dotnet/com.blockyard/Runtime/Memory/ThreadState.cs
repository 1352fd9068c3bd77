using System;

namespace Blockyard.Memory
{
    /// <summary>The fields of a <see cref="ThreadMemory"/> that every allocation uses, in unmanaged memory.</summary>
    internal unsafe struct ThreadState
    {
        /// <summary>Here and not in <see cref="JobRegion"/>, whose initialisers would keep Mono from inlining the code
        /// that uses it.</summary>
        internal const int JobRegionSize = 256 * 1024;

        internal byte* TempCursor;
        internal byte* TempLimit;
        internal byte* TempStart;

        /// <summary><see cref="TempLimit"/> and <see cref="TempStart"/> for the code inlined into callers. With checks
        /// they are null and the last address, so that this code never serves a request. The limit is null also while
        /// allocations are counted.</summary>
        internal byte* InlineTempLimit;
        internal byte* InlineTempStart;

        /// <summary>The newest block; equal to the cursor after that block was freed.</summary>
        internal byte* LastBlock;
        internal byte* PeakCursor;
        internal byte* JobCursor;
        internal byte* JobLimit;
        internal JobRegion* Job;

        /// <summary>Blocks of <see cref="Job"/>, minus those that this thread freed. The region counts what other
        /// threads freed.</summary>
        internal long JobLive;

        /// <summary>
        /// <see cref="JobLimit"/> and <see cref="Job"/> for the code inlined into callers. They are null and
        /// <see cref="Closed"/> while blocks are tracked or counted, so that code needs no extra test. Other threads
        /// close them when that begins, and the thread itself opens them; both hold the lock of
        /// <see cref="ThreadMemory"/>.
        /// </summary>
        internal byte* InlineJobLimit;
        internal JobRegion* InlineJob;

        /// <summary>Allocations that were not made by code inlined into callers: all while
        /// <see cref="AllocationCounts"/> are on.</summary>
        internal long TempAllocations;
        internal long TempJobAllocations;

        /// <summary>Bytes and blocks of <see cref="Lifetime.Persistent"/> that this thread allocated, minus the bytes
        /// that it freed.</summary>
        internal long PersistentBytes;
        internal long PersistentAllocations;

        /// <summary>Freed blocks of <see cref="PersistentMemory"/> by size class, each of which begins with the address
        /// of the next, and the bytes that they take.</summary>
        internal fixed long Cached[(PersistentMemory.LargestCached / 16) + 1];
        internal long CachedBytes;

        /// <summary>No region has this address. Null would not do: it is the region of small addresses.</summary>
        internal static JobRegion* Closed => (JobRegion*)1;

        /// <summary>The calling thread's state; null before its first allocation. Kept out of classes with
        /// initialisers, which Mono would check on every access.</summary>
        [ThreadStatic]
        internal static ThreadState* Current;
    }
}
