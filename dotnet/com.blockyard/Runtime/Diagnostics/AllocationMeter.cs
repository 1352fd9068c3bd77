using System;
using System.Reflection;

namespace Blockyard.Diagnostics
{
    /// <summary>Counts the bytes that the calling thread allocates on the collected heap.</summary>
    /// <remarks>
    /// Exact on .NET and on Mono's generational collector, where the runtime counts a thread's bytes. It is calibrated
    /// once per process: it measures and subtracts its own cost, and counts known allocations to detect a runtime whose
    /// counter is missing or does not move (<see cref="CanTell"/>). Allocations of other threads are not counted. Any
    /// thread may use it.
    /// </remarks>
    public static class AllocationMeter
    {
        private const int ProbeLength = 1000;
        private const int Probes = 8;

        private static readonly Func<long>? Counter = FindCounter();
        private static readonly long Price;
        private static byte[]? sink;

        static AllocationMeter()
        {
            Explanation = Calibrate(out Price);
        }

        /// <summary>Whether the runtime counts a thread's bytes.</summary>
        public static bool CanTell => Explanation.Length == 0;

        /// <summary>Why the runtime cannot count, as a sentence; empty when it can.</summary>
        public static string Explanation { get; }

        /// <summary>The bytes of the calling thread so far. Only where <see cref="CanTell"/>.</summary>
        internal static long BytesSoFar => Counter!();

        /// <summary>Runs an action once and counts the bytes that it allocated on this thread.</summary>
        /// <remarks>A first run may allocate more, for static fields and caches. Run the action once before.</remarks>
        /// <param name="action">The action. Its exceptions pass through.</param>
        /// <exception cref="ArgumentNullException">The action is null.</exception>
        public static AllocationMeasurement Measure(Action action)
        {
            if (action == null)
            {
                throw new ArgumentNullException(nameof(action));
            }

            if (!CanTell)
            {
                action();
                return new AllocationMeasurement(false, -1);
            }

            return new AllocationMeasurement(true, Math.Max(0, Count(Counter!, action) - Price));
        }

        private static long Count(Func<long> counter, Action action)
        {
            long before = counter();
            action();
            return counter() - before;
        }

        /// <summary>Looked up by name, because not every .NET Standard 2.1 runtime has it.</summary>
        private static Func<long>? FindCounter()
        {
            const BindingFlags PublicStatic = BindingFlags.Public | BindingFlags.Static;
            MethodInfo? method = typeof(GC).GetMethod(
                "GetAllocatedBytesForCurrentThread", PublicStatic, null, Type.EmptyTypes, null);
            return method == null ? null : (Func<long>)Delegate.CreateDelegate(typeof(Func<long>), method);
        }

        private static string Calibrate(out long price)
        {
            price = 0;
            if (Counter == null)
            {
                return "this runtime has no counter of a thread's allocated bytes.";
            }

            Action nothing = Nothing;
            price = long.MaxValue;
            for (int i = 0; i < Probes; i++)
            {
                price = Math.Min(price, Count(Counter, nothing));
            }

            // The least of several runs: the first may include one-time allocations for the type.
            Action probe = Probe;
            long counted = long.MaxValue;
            for (int i = 0; i < Probes; i++)
            {
                counted = Math.Min(counted, Count(Counter, probe) - price);
            }

            if (counted < ProbeLength || counted > ProbeLength + 64)
            {
                return "this runtime counted " + counted + " bytes for an array of " + ProbeLength + ".";
            }

            return string.Empty;
        }

        private static void Nothing()
        {
        }

        private static void Probe() => sink = new byte[ProbeLength];
    }
}
