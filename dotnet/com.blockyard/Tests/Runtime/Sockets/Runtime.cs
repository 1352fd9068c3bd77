using System;

namespace Blockyard.Tests
{
    /// <summary>Which runtime the tests are on, where they differ.</summary>
    internal static class Runtime
    {
        internal static bool IsMono { get; } = Type.GetType("Mono.Runtime") != null;
    }
}
