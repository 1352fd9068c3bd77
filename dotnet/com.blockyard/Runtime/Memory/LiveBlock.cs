namespace Blockyard.Memory
{
    /// <summary>A block that leak detection found.</summary>
    internal readonly struct LiveBlock
    {
        private readonly long size;
        private readonly long frame;
        private readonly Lifetime lifetime;

        internal LiveBlock(ulong address, long size, long frame, Lifetime lifetime)
        {
            Address = address;
            this.size = size;
            this.frame = frame;
            this.lifetime = lifetime;
        }

        internal ulong Address { get; }

        public override string ToString() =>
            "a " + lifetime + " block of " + size + " bytes at 0x" + Address.ToString("x")
            + ", allocated in frame " + frame + ",";
    }
}
