using System;

namespace Blockyard.Memory
{
    /// <summary>The words of a <see cref="ThreadMemory"/> that every allocation touches, in unmanaged memory.</summary>
    internal unsafe struct ThreadState
    {
        /// <summary>Here and not in <see cref="JobRegion"/>, whose initialisers keep Mono from inlining what asks it.</summary>
        internal const int JobRegionSize = 256 * 1024;

        internal byte* TempCursor;
        internal byte* TempLimit;
        internal byte* TempStart;

        /// <summary>The newest block; where the cursor is when that was taken back.</summary>
        internal byte* LastBlock;
        internal byte* PeakCursor;
        internal byte* JobCursor;
        internal byte* JobLimit;
        internal JobRegion* Job;

        /// <summary>Blocks of <see cref="Job"/>, less those that this thread freed; what others freed stands in the region.</summary>
        internal long JobLive;

        /// <summary>
        /// <see cref="JobLimit"/> and <see cref="Job"/> for the code inlined into callers; null and <see cref="Closed"/> while
        /// blocks are tracked, which so costs that code no look. Other threads close them when tracking begins, under the
        /// gate of <see cref="ThreadMemory"/>; the thread itself opens them, under the same.
        /// </summary>
        internal byte* InlineJobLimit;
        internal JobRegion* InlineJob;

        /// <summary>No region has this address, and unlike null it is no block's region.</summary>
        internal static JobRegion* Closed => (JobRegion*)1;

        /// <summary>The calling thread's; null until it first allocates. Apart from classes with initialisers, which Mono
        /// would look at on every access.</summary>
        [ThreadStatic]
        internal static ThreadState* Current;
    }
}
