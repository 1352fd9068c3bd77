namespace Blockyard.Memory
{
    /// <summary>A block that leak detection found.</summary>
    internal readonly struct LiveBlock
    {
        /// <summary>The frame of a block that was allocated while leak detection was off.</summary>
        internal const long NoReport = -1;

        private readonly long size;
        private readonly Lifetime lifetime;

        internal LiveBlock(ulong address, long size, long frame, Lifetime lifetime)
        {
            Address = address;
            this.size = size;
            Frame = frame;
            this.lifetime = lifetime;
        }

        internal ulong Address { get; }

        internal long Frame { get; }

        public override string ToString() =>
            "a " + lifetime + " block of " + size + " bytes at 0x" + Address.ToString("x")
            + ", allocated in frame " + Frame + ",";
    }
}
