using System;

namespace Blockyard.Memory
{
    /// <summary>Decides whether to request a huge page, by what the last huge pages and the small pages cost.</summary>
    /// <remarks>
    /// <para>Bound: compared with small pages alone, all requests together lose at most 1/<see cref="SmallPerLoss"/> of
    /// the time that small pages took, plus one request, whose price is not known in advance. A balance ensures this. A
    /// request that cost less than small pages adds the difference; one that cost more subtracts it. Each small page
    /// adds 1/<see cref="SmallPerLoss"/> of its time. No huge page is requested while the balance is negative. The
    /// balance is capped at <see cref="LargestCredit"/> times the price of a huge page's worth of small pages, so that
    /// old gains do not pay for a long series of expensive requests.</para>
    /// <para>Arithmetic only: no lock, no system call.</para>
    /// </remarks>
    internal sealed class PageCosts
    {
        /// <summary>Requests may lose 1/20 (5 %) of the time that small pages took.</summary>
        internal const long SmallPerLoss = 20;

        private const long LargestCredit = 8;

        /// <summary>Bytes of small pages that make one observation. With fewer, the system call itself would dominate
        /// the mean.</summary>
        private const long Observation = 1024 * 1024;

        /// <summary>The price of small pages is the median of this many observations. A few expensive ones, for which
        /// the host had to find memory, must not make expensive huge pages look cheap.</summary>
        private const int Remembered = 15;

        private readonly long hugePage;
        private readonly long[] observed = new long[Remembered];
        private readonly long[] sorted = new long[Remembered];
        private uint observations;
        private long smallBytes;
        private long smallTime;
        private long small;
        private long lastAsked;
        private long balance;

        /// <param name="hugePage">Bytes of a huge page.</param>
        internal PageCosts(long hugePage) => this.hugePage = hugePage;

        /// <summary>Whether to request the next huge page: the price of small pages is known, and the balance allows
        /// it.</summary>
        internal bool IsWorthAsking => small > 0 && balance >= 0;

        /// <summary>Records that small pages were taken.</summary>
        internal void TookSmall(long bytes, long nanoseconds)
        {
            balance = Math.Min(balance + (nanoseconds / SmallPerLoss), small * LargestCredit);
            smallBytes += bytes;
            smallTime += nanoseconds;
            if (smallBytes < Observation)
            {
                return;
            }

            observed[observations++ % Remembered] = smallTime * hugePage / smallBytes;
            int count = (int)Math.Min(observations, Remembered);
            Array.Copy(observed, sorted, count);
            Array.Sort(sorted, 0, count);
            small = sorted[count / 2];
            smallBytes = 0;
            smallTime = 0;
            if (balance < 0 && small >= lastAsked)
            {
                // Small pages now cost as much as the requests that caused the debt.
                balance = 0;
            }
        }

        /// <summary>Records a request for a huge page.</summary>
        /// <param name="given">Whether the kernel gave one. The time of a refused request is lost.</param>
        /// <param name="nanoseconds">How long it took.</param>
        internal void Asked(bool given, long nanoseconds)
        {
            lastAsked = given ? nanoseconds : long.MaxValue;
            balance = Math.Min(balance + (given ? small : 0) - nanoseconds, small * LargestCredit);
        }
    }
}
