using Blockyard.Memory;

namespace Blockyard.Tests
{
    /// <summary>Compiles only if checks are on in Unity's editor and development builds, and off in players.</summary>
    public static class ChecksInUnity
    {
#if UNITY_EDITOR || DEVELOPMENT_BUILD
        private const byte AreOn = Checks.AreOn ? 1 : 256;
#else
        private const byte AreOff = Checks.AreOn ? 256 : 1;
#endif
    }
}
