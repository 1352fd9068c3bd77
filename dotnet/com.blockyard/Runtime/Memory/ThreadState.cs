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
        /// they are null and the last address, so that this code never serves a request.</summary>
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
        /// <see cref="Closed"/> while blocks are tracked, so that code needs no extra test. Other threads close them
        /// when tracking begins, and the thread itself opens them; both hold the lock of <see cref="ThreadMemory"/>.
        /// </summary>
        internal byte* InlineJobLimit;
        internal JobRegion* InlineJob;

        /// <summary>No region has this address. Null would not do: it is the region of small addresses.</summary>
        internal static JobRegion* Closed => (JobRegion*)1;

        /// <summary>The calling thread's state; null before its first allocation. Kept out of classes with
        /// initialisers, which Mono would check on every access.</summary>
        [ThreadStatic]
        internal static ThreadState* Current;
    }
}
