namespace Blockyard.Memory
{
    /// <summary>How long a block of unmanaged memory lives. It selects the allocator.</summary>
    public enum Lifetime
    {
        /// <summary>One frame of one thread: <see cref="FrameMemory.EndThreadFrame"/> frees all such blocks.</summary>
        Temp = 0,

        /// <summary>A few frames (<see cref="FrameMemory.TempJobFrames"/>, four by default), on any thread.</summary>
        TempJob = 1,

        /// <summary>Until it is freed, on any thread: the general heap.</summary>
        Persistent = 2,
    }
}
