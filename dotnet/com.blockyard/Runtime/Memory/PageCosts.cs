using System;

namespace Blockyard.Memory
{
    /// <summary>Whether a huge page is worth asking for, by what the last ones and the small pages took.</summary>
    /// <remarks>
    /// <para>Bound: against small pages alone, all that was asked for loses at most 1/<see cref="SmallPerLoss"/> of the time that
    /// small pages took, and one ask, whose price nobody knows before. For that a balance is kept: what an ask took less than
    /// small pages is added, what it took more is subtracted, each small page adds its 1/<see cref="SmallPerLoss"/>, and nothing
    /// is asked for while the balance is negative. Old gains count for no more than <see cref="LargestCredit"/> times a
    /// huge page's worth of small pages, so that no long run of dear ones is paid with them.</para>
    /// <para>Arithmetic only: no lock, no call to the system.</para>
    /// </remarks>
    internal sealed class PageCosts
    {
        /// <summary>Time in small pages for each part of it that asking may lose: 5 %.</summary>
        internal const long SmallPerLoss = 20;

        private const long LargestCredit = 8;

        /// <summary>Bytes of small pages that make one observation; a mean of fewer would be the system call's own time.</summary>
        private const long Observation = 1024 * 1024;

        /// <summary>Observations of which the middle one is the price of small pages: a few that were dear, since the memory
        /// behind them had to be found, must not make dear huge pages look cheap.</summary>
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

        /// <summary>Whether the next huge page should be asked for: small ones' price is known, and the balance allows it.</summary>
        internal bool IsWorthAsking => small > 0 && balance >= 0;

        /// <summary>Small pages were taken.</summary>
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
                // Small pages have become as dear as the asks that made the debt.
                balance = 0;
            }
        }

        /// <summary>A huge page was asked for.</summary>
        /// <param name="given">Whether there was one; what a refusal took is lost.</param>
        /// <param name="nanoseconds">What it took.</param>
        internal void Asked(bool given, long nanoseconds)
        {
            lastAsked = given ? nanoseconds : long.MaxValue;
            balance = Math.Min(balance + (given ? small : 0) - nanoseconds, small * LargestCredit);
        }
    }
}
