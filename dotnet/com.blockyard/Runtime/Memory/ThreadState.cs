using System;

namespace Blockyard.Memory
{
    /// <summary>The words of a <see cref="ThreadMemory"/> that every allocation touches, in unmanaged memory.</summary>
    internal unsafe struct ThreadState
    {
        internal byte* TempCursor;
        internal byte* TempLimit;
        internal byte* TempStart;
        internal byte* LastBlock;
        internal byte* BeforeLast;
        internal byte* PeakCursor;
        internal byte* JobCursor;
        internal byte* JobLimit;
        internal JobRegion* Job;

        /// <summary>Blocks of <see cref="Job"/>, less those that this thread freed; what others freed stands in the region.</summary>
        internal int JobLive;

        /// <summary>The calling thread's; null until it first allocates. Apart from classes with initialisers, which Mono
        /// would look at on every access.</summary>
        [ThreadStatic]
        internal static ThreadState* Current;
    }
}
