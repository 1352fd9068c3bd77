namespace Blockyard.Diagnostics
{
    /// <summary>How much an action allocated on the collected heap.</summary>
    public readonly struct AllocationMeasurement
    {
        internal AllocationMeasurement(bool isKnown, long bytes)
        {
            IsKnown = isKnown;
            Bytes = bytes;
        }

        /// <summary>Whether the runtime can count allocations. If not, <see cref="Bytes"/> is -1.</summary>
        public bool IsKnown { get; }

        /// <summary>The bytes that the calling thread allocated, including object headers; -1 when unknown.</summary>
        public long Bytes { get; }

        /// <inheritdoc/>
        public override string ToString() => IsKnown ? Bytes + " bytes" : "not known: " + AllocationMeter.Explanation;
    }
}
