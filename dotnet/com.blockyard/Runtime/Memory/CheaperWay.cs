namespace Blockyard.Memory
{
    /// <summary>Which of two ways to do the same is the cheaper one, by what each took last.</summary>
    /// <remarks>
    /// Each is tried once; then the cheaper one is taken, and the other again for one observation in <see cref="Between"/>, since
    /// prices change. A single observation that was dear by chance costs one more: the way that is taken is observed all the time.
    /// Arithmetic only: no lock, no call to the system.
    /// </remarks>
    internal sealed class CheaperWay
    {
        /// <summary>Observations of the cheaper way for one of the other.</summary>
        internal const int Between = 64;

        private readonly long observation;
        private Way first;
        private Way second;
        private int since;

        /// <param name="observation">The amount that makes one observation, such as bytes: of less, a price would be by chance.</param>
        internal CheaperWay(long observation) => this.observation = observation;

        /// <summary>Whether the second way is to be taken now.</summary>
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

        /// <summary>One of the ways was taken.</summary>
        /// <param name="bySecond">Which.</param>
        /// <param name="amount">How much was done.</param>
        /// <param name="time">What it took.</param>
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

            /// <summary>Time for an amount of 1; negative when it is not known.</summary>
            internal double Price => isKnown ? lastPrice : -1;

            /// <summary>True when this made an observation.</summary>
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
