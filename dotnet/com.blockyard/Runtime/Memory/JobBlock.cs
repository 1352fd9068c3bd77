using System;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>The header right before a TempJob block, in regions whose blocks are tracked.</summary>
    /// <remarks>
    /// The headers of a region form a list. Its thread adds to it; any thread ends a block, by one atomic operation.
    /// </remarks>
    internal unsafe struct JobBlock
    {
        private const int LiveState = 0x4A6F624C;
        private const int FreedState = 0x4A6F6246;

        internal long Size;
        internal long Frame;
        internal JobBlock* Previous;

        /// <summary>Whether leak detection was on when the block was allocated.</summary>
        internal bool IsForReports;

        /// <summary>Whether the block was already reported as too old.</summary>
        internal bool IsReported;
        private int state;

        internal static JobBlock* Of(byte* block) => (JobBlock*)block - 1;

        /// <summary>Writes the header of a block that is allocated, and adds it to the region's list.</summary>
        internal static void Begin(JobRegion* region, byte* block, long size)
        {
            JobBlock* header = Of(block);
            header->Size = size;
            header->Frame = FrameMemory.FramesEnded;
            header->Previous = region->Last;
            header->IsForReports = !LeakDetection.IsOff;
            header->IsReported = false;
            header->state = LiveState;

            // After the header is written: another thread may be going over the list.
            Volatile.Write(ref *(IntPtr*)&region->Last, (IntPtr)header);
        }

        /// <summary>Marks a block as freed. False when it is not live.</summary>
        internal static bool TryEnd(byte* block) =>
            Interlocked.CompareExchange(ref Of(block)->state, FreedState, LiveState) == LiveState;

        internal bool IsLive => Volatile.Read(ref state) == LiveState;
    }
}
