using System;
using System.Text;

namespace Blockyard.Memory
{
    /// <summary>One thread's counts. Only that thread changes them.</summary>
    internal struct LifetimeCounters
    {
        internal long[] Histogram;
        internal long Frames;
        internal long TempHighWater;
        internal long OverflowTooLarge;
        internal long OverflowFull;

        internal void EndFrame(long used)
        {
            Frames++;
            TempHighWater = Math.Max(TempHighWater, used);
            int bucket = 0;
            long kilobytes = (used + 1023) >> 10;
            for (; kilobytes > 0 && bucket < LifetimeStatistics.Buckets - 1; kilobytes >>= 1)
            {
                bucket++;
            }

            Histogram[bucket]++;
        }
    }

    /// <summary>How one thread used its Temp region, as a histogram of its frames' peaks.</summary>
    public readonly struct LifetimeStatistics
    {
        /// <summary>The number of buckets of the histogram; <see cref="FramesInBucket"/> says what each
        /// counts.</summary>
        public const int Buckets = 24;

        private readonly long[]? histogram;

        internal LifetimeStatistics(string thread, in LifetimeCounters counters, long capacity, long used)
        {
            Thread = thread;
            histogram = (long[])counters.Histogram.Clone();
            Frames = counters.Frames;
            TempCapacity = capacity;
            TempUsed = used;
            TempHighWater = Math.Max(counters.TempHighWater, used);
            OverflowTooLarge = counters.OverflowTooLarge;
            OverflowFull = counters.OverflowFull;
        }

        /// <summary>The thread's name, or its number when it has no name.</summary>
        public string Thread { get; }

        /// <summary>The number of frames that the thread has ended.</summary>
        public long Frames { get; }

        /// <summary>Bytes of its Temp region; 0 before the first Temp block.</summary>
        public long TempCapacity { get; }

        /// <summary>Bytes of Temp in use in this frame, including overflowed blocks.</summary>
        public long TempUsed { get; }

        /// <summary>The most bytes of Temp in use in one frame, including overflowed blocks.</summary>
        public long TempHighWater { get; }

        /// <summary>Temp blocks that overflowed into TempJob because they were larger than the whole region.</summary>
        public long OverflowTooLarge { get; }

        /// <summary>Temp blocks that overflowed into TempJob because the region was full.</summary>
        public long OverflowFull { get; }

        /// <summary>The number of frames whose peak lay in a bucket. Bucket 0 counts frames without Temp, 1 peaks up to
        /// 1 KiB, n peaks below 2^(n-1) KiB.</summary>
        /// <param name="bucket">0 to <see cref="Buckets"/> - 1.</param>
        public long FramesInBucket(int bucket) => histogram == null ? 0 : histogram[bucket];

        /// <inheritdoc/>
        public override string ToString()
        {
            StringBuilder text = new StringBuilder();
            text.Append(Thread).Append(": temp ").Append(TempCapacity).Append(" B, high water ").Append(TempHighWater)
                .Append(" B, frames ").Append(Frames).Append(", overflow count (too large) ").Append(OverflowTooLarge)
                .Append(", overflow count (full) ").Append(OverflowFull).AppendLine()
                .Append("  peak usage frame count:");
            for (int bucket = 0; bucket < Buckets; bucket++)
            {
                long frames = FramesInBucket(bucket);
                if (frames > 0)
                {
                    text.Append(" [").Append(NameOf(bucket)).Append("]: ").Append(frames);
                }
            }

            return text.ToString();
        }

        private static string NameOf(int bucket) =>
            bucket == 0 ? "0 B" : bucket == 1 ? "1 B-1 KB" : Half(bucket - 2) + "-" + Half(bucket - 1);

        private static string Half(int power) => power < 10 ? (1 << power) + " KB" : (1 << (power - 10)) + " MB";
    }
}
