using System;

namespace Blockyard.Diagnostics
{
    /// <summary>An action allocated on the collected heap although it must not.</summary>
    public sealed class AllocationAssertException : Exception
    {
        internal AllocationAssertException(long bytes, int run)
            : base("Expected no allocation, but measured run " + run + " allocated " + bytes + " bytes on this thread.")
        {
            Bytes = bytes;
        }

        internal AllocationAssertException(string scope, long bytes)
            : base("'" + scope + "' must not allocate, but allocated " + bytes + " bytes on this thread.")
        {
            Bytes = bytes;
        }

        /// <summary>The bytes that the failing run allocated.</summary>
        public long Bytes { get; }
    }
}
