using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Whether indices, the lives of containers, and freed blocks are checked.</summary>
    /// <remarks>
    /// <para>In Unity checks are on in the editor and in development builds. Elsewhere they are off unless the
    /// environment variable <c>BLOCKYARD_CHECKS</c> is 1, or the <see cref="AppContext"/> switch
    /// <c>Blockyard.Checks</c> is true, when the process starts; the variable has precedence. The compile symbols
    /// <c>BLOCKYARD_CHECKS</c> and <c>BLOCKYARD_RELEASE</c> turn them on and off when the libraries are built from
    /// source.</para>
    /// <para>Checks that are off cost nothing: <see cref="AreOn"/> is a constant for the C# compiler or for the
    /// runtime's compiler, which removes the code that it guards.</para>
    /// </remarks>
    public static class Checks
    {
#if BLOCKYARD_RELEASE
        /// <summary>Whether checks are made in this process.</summary>
        public const bool AreOn = false;
#elif BLOCKYARD_CHECKS || UNITY_EDITOR || DEVELOPMENT_BUILD
        /// <summary>Whether checks are made in this process.</summary>
        public const bool AreOn = true;
#elif UNITY_5_3_OR_NEWER
        /// <summary>Whether checks are made in this process.</summary>
        public const bool AreOn = false;
#else
        private static readonly bool Value = FromSettings();

        /// <summary>Whether checks are made in this process.</summary>
        public static bool AreOn
        {
            // Because of this attribute Mono initialises the class before it compiles a caller, and knows the value
            // then.
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => Value;
        }

        private static bool FromSettings()
        {
            switch (Environment.GetEnvironmentVariable("BLOCKYARD_CHECKS"))
            {
                case "0":
                    return false;
                case "1":
                    return true;
                default:
                    return AppContext.TryGetSwitch("Blockyard.Checks", out bool isOn) && isOn;
            }
        }
#endif
    }
}
