namespace Blockyard.Memory
{
    /// <summary>How long a block of unmanaged memory lives: the allocator is chosen by it.</summary>
    public enum Lifetime
    {
        /// <summary>One frame of one thread: freed all together by <see cref="FrameMemory.EndThreadFrame"/>.</summary>
        Temp = 0,

        /// <summary>A few frames (four, unless <see cref="FrameMemory.TempJobFrames"/> says otherwise), any thread.</summary>
        TempJob = 1,

        /// <summary>Until it is freed, any thread: the general heap.</summary>
        Persistent = 2,
    }
}
