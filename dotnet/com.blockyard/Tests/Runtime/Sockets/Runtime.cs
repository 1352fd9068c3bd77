using System;

namespace Blockyard.Tests
{
    /// <summary>Says which runtime the tests run on, for expectations that differ.</summary>
    internal static class Runtime
    {
        internal static bool IsMono { get; } = Type.GetType("Mono.Runtime") != null;
    }
}
