using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using Blockyard.Memory;

namespace Blockyard.Benchmarks
{
    /// <summary>A test of allocators as in Unity's study: the times of 1000 blocks of 4 bytes at alignment 4, and the
    /// distances between them.</summary>
    /// <remarks>Writes three files per lifetime, which `blockyard locality` draws.</remarks>
    internal static unsafe class LifetimesStudy
    {
        private const int Blocks = 1000;
        private const int Size = 4;
        private const int Alignment = 4;

        /// <param name="folder">Where the files go.</param>
        /// <param name="first">Whether to measure the first pass of the process, as the study's author did: "once" as
        /// the process is, "prepared" after <see cref="UnmanagedMemory.Prepare"/>. Null measures the second.</param>
        internal static void Run(string folder, string? first)
        {
            Directory.CreateDirectory(folder);
            if (first == "prepared")
            {
                UnmanagedMemory.Prepare();
            }

            foreach (Lifetime lifetime in new[] { Lifetime.Temp, Lifetime.TempJob, Lifetime.Persistent })
            {
                if (first == null)
                {
                    // Compiles the code and creates the regions before the clock starts.
                    LeakDetection.Mode = LeakMode.Off;
                    Measure(lifetime, out _, out _);
                }

                long[] begins = Measure(lifetime, out long allocate, out long deallocate);
                Write(folder, lifetime, begins, allocate, deallocate);
            }
        }

        private static long[] Measure(Lifetime lifetime, out long allocate, out long deallocate)
        {
            long[] begins = new long[Blocks];
            long start = Stopwatch.GetTimestamp();
            for (int i = 0; i < Blocks; i++)
            {
                begins[i] = (long)UnmanagedMemory.Malloc(Size, Alignment, lifetime);
            }

            long middle = Stopwatch.GetTimestamp();
            for (int i = 0; i < Blocks; i++)
            {
                UnmanagedMemory.Free((void*)begins[i], lifetime);
            }

            long end = Stopwatch.GetTimestamp();
            FrameMemory.EndThreadFrame();
            allocate = Ticks(middle - start);
            deallocate = Ticks(end - middle);
            return begins;
        }

        /// <summary>In units of 100 ns, as in the study.</summary>
        private static long Ticks(long timestamps) => timestamps * TimeSpan.TicksPerSecond / Stopwatch.Frequency;

        private static void Write(string folder, Lifetime lifetime, long[] begins, long allocate, long deallocate)
        {
            string path = Path.Combine(folder, lifetime.ToString());
            File.WriteAllText(
                path + "_times.csv", "Operation,Ticks\nAllocate," + allocate + "\nDeallocate," + deallocate + "\n");
            SortedDictionary<long, int> buckets = new SortedDictionary<long, int>();
            using (StreamWriter distances = new StreamWriter(path + "_distances.csv"))
            {
                distances.Write("Distance\n");
                for (int i = 1; i < Blocks; i++)
                {
                    long distance = begins[i] - (begins[i - 1] + Size);
                    distances.Write(distance + "\n");
                    buckets.TryGetValue(distance, out int seen);
                    buckets[distance] = seen + 1;
                }
            }

            using StreamWriter counts = new StreamWriter(path + "_buckets.csv");
            counts.Write("Distance,Count\n");
            foreach (KeyValuePair<long, int> bucket in buckets)
            {
                counts.Write(bucket.Key + "," + bucket.Value + "\n");
            }
        }
    }
}
