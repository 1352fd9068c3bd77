using System;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Says which runtime the tests run on, for expectations that differ.</summary>
    internal static class Runtime
    {
        internal static bool IsMono { get; } = Type.GetType("Mono.Runtime") != null;

        /// <summary>Whether it is .NET Core, whose sockets copy end points, and which does not count a thread's large
        /// arrays.</summary>
        internal static bool IsCore { get; } = !IsMono && Environment.Version.Major < 5;

        internal static void IgnoreOnCore()
        {
            if (IsCore)
            {
                Assert.Ignore("this runtime is .NET Core, whose sockets copy end points");
            }
        }
    }
}
