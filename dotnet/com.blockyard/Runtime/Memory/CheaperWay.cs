namespace Blockyard.Memory
{
    /// <summary>Chooses the cheaper of two ways to do the same work, by what each cost last.</summary>
    /// <remarks>
    /// Each way is tried once. Then the cheaper one is used, and the other one again for one observation in
    /// <see cref="Between"/>, because prices change. A single observation that was expensive by chance costs one more
    /// observation, because the way in use is always observed. Arithmetic only: no lock, no system call.
    /// </remarks>
    internal sealed class CheaperWay
    {
        /// <summary>Observations of the cheaper way for each observation of the other.</summary>
        internal const int Between = 64;

        private readonly long observation;
        private Way first;
        private Way second;
        private int since;

        /// <param name="observation">The amount that makes one observation, such as a number of bytes. Less would not
        /// give a reliable price.</param>
        internal CheaperWay(long observation) => this.observation = observation;

        /// <summary>Whether to use the second way now.</summary>
        internal bool TakeSecond
        {
            get
            {
                if (first.Price < 0 || second.Price < 0)
                {
                    return first.Price >= 0;
                }

                return IsSecondCheaper != since >= Between;
            }
        }

        private bool IsSecondCheaper => second.Price < first.Price;

        /// <summary>Records that one of the ways was used.</summary>
        /// <param name="bySecond">Which.</param>
        /// <param name="amount">How much work was done.</param>
        /// <param name="time">How long it took.</param>
        internal void Took(bool bySecond, long amount, long time)
        {
            bool wasCheaper = bySecond == IsSecondCheaper;
            if (bySecond ? second.Took(amount, time, observation) : first.Took(amount, time, observation))
            {
                since = wasCheaper ? since + 1 : 0;
            }
        }

        private struct Way
        {
            private double lastPrice;
            private bool isKnown;
            private long amount;
            private long time;

            /// <summary>Time per unit of work; negative when unknown.</summary>
            internal double Price => isKnown ? lastPrice : -1;

            /// <summary>Returns true when this completed an observation.</summary>
            internal bool Took(long more, long took, long observation)
            {
                amount += more;
                time += took;
                if (amount < observation)
                {
                    return false;
                }

                lastPrice = (double)time / amount;
                isKnown = true;
                amount = 0;
                time = 0;
                return true;
            }
        }
    }
}
