using System;
using System.Diagnostics;

namespace Blockyard.Memory
{
    /// <summary>How closely leaks are looked for.</summary>
    public enum LeakMode
    {
        /// <summary>Not at all: nothing is recorded, allocation costs nothing more.</summary>
        Off = 0,

        /// <summary>Blocks are recorded with their size and frame.</summary>
        On = 1,

        /// <summary>And with the stack that allocated them: slow, for finding a leak that is known to be there.</summary>
        OnWithStacks = 2,
    }

    /// <summary>The mode of leak detection, and where its reports go.</summary>
    /// <remarks>
    /// The environment's <c>BLOCKYARD_LEAKS</c> (0, 1 or 2) sets the mode at start; without it, it is
    /// <see cref="LeakMode.On"/> in checked builds and <see cref="LeakMode.Off"/> with <c>BLOCKYARD_RELEASE</c> defined.
    /// All members may be used from any thread.
    /// </remarks>
    public static class LeakDetection
    {
        private static volatile LeakMode mode = FromEnvironment();

        /// <summary>Where reports go: called with one text a leak, maybe on the finalizer's thread. Null is standard error.</summary>
        public static Action<string>? Reporter { get; set; }

        /// <summary>The mode. A block allocated while it was off is not known to a later report.</summary>
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
                    ThreadMemory.CloseInlineJobs();
                }
            }
        }

        internal static bool IsOff => Mode == LeakMode.Off;

        internal static StackTrace? CaptureStack() =>
            Mode == LeakMode.OnWithStacks ? new StackTrace(2, fNeedFileInfo: true) : null;

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
#if BLOCKYARD_RELEASE
                    return LeakMode.Off;
#else
                    return LeakMode.On;
#endif
            }
        }
    }
}
