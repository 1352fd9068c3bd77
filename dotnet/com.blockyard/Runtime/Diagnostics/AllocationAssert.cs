using System;

namespace Blockyard.Diagnostics
{
    /// <summary>Assertions about allocation, for tests in any framework.</summary>
    public static class AllocationAssert
    {
        /// <summary>Fails if an action in its steady state allocates on the collected heap of this thread.</summary>
        /// <param name="action">The action.</param>
        /// <param name="warmUps">How often the action runs before it is measured. First runs may allocate more.</param>
        /// <param name="repeats">How often the action is measured. No run may allocate.</param>
        /// <exception cref="AllocationAssertException">The action allocated. The message says how much and in which
        /// run.</exception>
        /// <exception cref="NotSupportedException">The runtime cannot count allocations. The assertion never passes
        /// silently.</exception>
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
