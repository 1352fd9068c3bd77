namespace Blockyard.Memory
{
    /// <summary>A snapshot of what a block allocator holds and has done.</summary>
    public readonly struct AllocatorStatistics
    {
        internal AllocatorStatistics(
            long live, long peak, long total, int blocks, long reserved, long used, long huge, int handles, long resets)
        {
            LiveItems = live;
            PeakItems = peak;
            TotalItems = total;
            Blocks = blocks;
            BytesReserved = reserved;
            BytesUsed = used;
            BytesInHugePages = huge;
            LiveHandles = handles;
            Resets = resets;
        }

        /// <summary>Items handed out and not freed. A span counts as its number of items.</summary>
        public long LiveItems { get; }

        /// <summary>The most items that were live at once.</summary>
        public long PeakItems { get; }

        /// <summary>Items handed out since the allocator was made.</summary>
        public long TotalItems { get; }

        /// <summary>Blocks that the allocator holds, including empty ones.</summary>
        public int Blocks { get; }

        /// <summary>Bytes that the allocator holds.</summary>
        public long BytesReserved { get; }

        /// <summary>Reserved bytes below the bump pointer: items, alignment padding and unused block ends.</summary>
        public long BytesUsed { get; }

        /// <summary>Reserved bytes in huge pages that the allocator requested (see
        /// <see cref="UnmanagedMemory.HugePages"/>). Huge pages that the system gives without a request are not
        /// counted.</summary>
        public long BytesInHugePages { get; }

        /// <summary>Handles that are valid.</summary>
        public int LiveHandles { get; }

        /// <summary>How often <c>Reset</c> was called.</summary>
        public long Resets { get; }

        /// <inheritdoc/>
        public override string ToString() =>
            "live " + LiveItems + ", peak " + PeakItems + ", total " + TotalItems + ", blocks " + Blocks + ", reserved "
            + BytesReserved + " B, used " + BytesUsed + " B, in huge pages " + BytesInHugePages + " B, handles "
            + LiveHandles + ", resets " + Resets;
    }
}
