namespace Blockyard.Memory
{
    /// <summary>What a block allocator holds and has done, at one moment.</summary>
    public readonly struct AllocatorStatistics
    {
        internal AllocatorStatistics(long live, long peak, long total, int blocks, long reserved, long used, long huge, int handles, long resets)
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

        /// <summary>Items handed out and not given back, whole spans counted by their items.</summary>
        public long LiveItems { get; }

        /// <summary>The most items that were live at once.</summary>
        public long PeakItems { get; }

        /// <summary>Items handed out since the allocator was made.</summary>
        public long TotalItems { get; }

        /// <summary>Blocks held from the runtime, spare ones included.</summary>
        public int Blocks { get; }

        /// <summary>Bytes held from the runtime.</summary>
        public long BytesReserved { get; }

        /// <summary>Bytes of them that lie behind the bump pointer: items, and what alignment and block ends left over.</summary>
        public long BytesUsed { get; }

        /// <summary>Bytes of those held that Linux gave as huge pages because they were asked for (see
        /// <see cref="UnmanagedMemory.HugePages"/>); those that a system gives unasked are not counted.</summary>
        public long BytesInHugePages { get; }

        /// <summary>Handles that are valid.</summary>
        public int LiveHandles { get; }

        /// <summary>How often <c>Reset</c> was called.</summary>
        public long Resets { get; }

        /// <inheritdoc/>
        public override string ToString() =>
            "live " + LiveItems + ", peak " + PeakItems + ", total " + TotalItems + ", blocks " + Blocks + ", reserved "
            + BytesReserved + " B, used " + BytesUsed + " B, in huge pages " + BytesInHugePages + " B, handles " + LiveHandles + ", resets " + Resets;
    }
}
