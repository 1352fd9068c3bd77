namespace Blockyard.Diagnostics
{
    /// <summary>What an action allocated on the collected heap.</summary>
    public readonly struct AllocationMeasurement
    {
        internal AllocationMeasurement(bool isKnown, long bytes)
        {
            IsKnown = isKnown;
            Bytes = bytes;
        }

        /// <summary>Whether the runtime can tell; when it can't, <see cref="Bytes"/> says nothing.</summary>
        public bool IsKnown { get; }

        /// <summary>Bytes that the calling thread allocated, object headers included; -1 when it is not known.</summary>
        public long Bytes { get; }

        /// <inheritdoc/>
        public override string ToString() => IsKnown ? Bytes + " bytes" : "not known: " + AllocationMeter.Explanation;
    }
}
