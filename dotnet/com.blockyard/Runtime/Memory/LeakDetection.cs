#pragma warning disable CS0162 // checks are a constant in Unity
using System;
using System.Diagnostics;

namespace Blockyard.Memory
{
    /// <summary>How much leak detection records.</summary>
    public enum LeakMode
    {
        /// <summary>Nothing. Allocation costs nothing extra.</summary>
        Off = 0,

        /// <summary>Each block's size and frame.</summary>
        On = 1,

        /// <summary>Also the stack that allocated the block. Slow; for finding the source of a known leak.</summary>
        OnWithStacks = 2,
    }

    /// <summary>Sets the mode of leak detection and where its reports go.</summary>
    /// <remarks>
    /// The environment variable <c>BLOCKYARD_LEAKS</c> (0, 1 or 2) sets the initial mode. Without it the mode is
    /// <see cref="LeakMode.On"/> if <see cref="Checks.AreOn"/>, and else <see cref="LeakMode.Off"/>. All members may be
    /// used from any thread.
    /// </remarks>
    public static class LeakDetection
    {
        private static volatile LeakMode mode = FromEnvironment();

        /// <summary>Receives one text per leak, possibly on the finalizer's thread. Null means standard
        /// error.</summary>
        public static Action<string>? Reporter { get; set; }

        /// <summary>The mode. Later reports do not include a block that was allocated while the mode was off.</summary>
        public static LeakMode Mode
        {
            get => mode;
            set
            {
                if (value < LeakMode.Off || value > LeakMode.OnWithStacks)
                {
                    throw new ArgumentOutOfRangeException(nameof(value), value, "Not a leak mode.");
                }

                mode = value;
                if (value != LeakMode.Off)
                {
                    ThreadMemory.CloseInlineCode();
                }
            }
        }

        internal static bool IsOff => Mode == LeakMode.Off;

        internal static StackTrace? CaptureStack() =>
            Mode == LeakMode.OnWithStacks ? new StackTrace(2, fNeedFileInfo: true) : null;

        /// <summary>Reports an allocator whose finalizer runs.</summary>
        internal static void ReportUndisposed(string allocator, long items, long bytes, StackTrace? madeAt) => Report(
            allocator + " with " + items + " items in " + bytes + " bytes was not disposed"
            + (madeAt == null
                ? "; set LeakMode.OnWithStacks to see where it was made"
                : ", made at" + Environment.NewLine + madeAt));

        internal static void Report(string text)
        {
            Action<string>? reporter = Reporter;
            if (reporter != null)
            {
                reporter(text);
            }
            else
            {
                Console.Error.WriteLine("blockyard: " + text);
            }
        }

        private static LeakMode FromEnvironment()
        {
            switch (Environment.GetEnvironmentVariable("BLOCKYARD_LEAKS"))
            {
                case "0":
                    return LeakMode.Off;
                case "1":
                    return LeakMode.On;
                case "2":
                    return LeakMode.OnWithStacks;
                default:
                    return Checks.AreOn ? LeakMode.On : LeakMode.Off;
            }
        }
    }
}
