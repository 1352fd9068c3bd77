using System;

namespace Blockyard.Diagnostics
{
    /// <summary>Assertions about allocation, for tests under any framework.</summary>
    public static class AllocationAssert
    {
        /// <summary>Fails unless an action allocates nothing on the collected heap of this thread in its steady state.</summary>
        /// <param name="action">What to run.</param>
        /// <param name="warmUps">How often it runs before it is measured, for what only first runs allocate.</param>
        /// <param name="repeats">How often it is measured; every run must be free of allocation.</param>
        /// <exception cref="AllocationAssertException">It allocated; the message says how much and in which run.</exception>
        /// <exception cref="NotSupportedException">The runtime can't tell: never a pass in silence.</exception>
        public static void Zero(Action action, int warmUps = 1, int repeats = 1)
        {
            if (action == null)
            {
                throw new ArgumentNullException(nameof(action));
            }

            if (repeats < 1)
            {
                throw new ArgumentOutOfRangeException(nameof(repeats), repeats, "At least one run is measured.");
            }

            if (!AllocationMeter.CanTell)
            {
                throw new NotSupportedException("Allocation can't be asserted: " + AllocationMeter.Explanation);
            }

            for (int i = 0; i < warmUps; i++)
            {
                action();
            }

            for (int i = 1; i <= repeats; i++)
            {
                AllocationMeasurement run = AllocationMeter.Measure(action);
                if (run.Bytes != 0)
                {
                    throw new AllocationAssertException(run.Bytes, i);
                }
            }
        }
    }
}
