namespace Blockyard.Memory
{
    /// <summary>Whether somebody listens to the counts of allocations, and the sums over all threads.</summary>
    /// <remarks>
    /// Code inlined into callers counts nothing. While somebody listens it is closed, as for leak detection, so that
    /// every allocation passes by the code that counts; so counting is free when nobody listens. Without static
    /// initialisers, which Mono would check in every call.
    /// </remarks>
    internal static class AllocationCounts
    {
        private static volatile bool areOn;

        /// <summary>Whether every allocation is counted.</summary>
        internal static bool AreOn
        {
            get => areOn;
            set
            {
                areOn = value;
                if (value)
                {
                    ThreadMemory.CloseInlineCode();
                }
            }
        }

        /// <summary>Sums over threads. Other threads' counts may be slightly out of date.</summary>
        internal struct Totals
        {
            /// <summary>Allocations of Temp and TempJob that were counted, and all of Persistent.</summary>
            internal long TempAllocations;
            internal long TempJobAllocations;
            internal long PersistentAllocations;

            /// <summary>Bytes of the current frames' Temp blocks, and of live blocks of the runtime's heap.</summary>
            internal long TempBytes;
            internal long PersistentBytes;
        }
    }
}
