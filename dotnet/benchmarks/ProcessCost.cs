using System;
using System.Diagnostics;
using System.IO;
using System.Runtime.InteropServices;

namespace Blockyard.Benchmarks
{
    /// <summary>Time, CPU time, peak memory and collections of this process since the start of the
    /// measurement.</summary>
    internal sealed class ProcessCost
    {
        private readonly Stopwatch watch = Stopwatch.StartNew();
        private readonly TimeSpan cpu = Process.GetCurrentProcess().TotalProcessorTime;
        private readonly int[] collections = Collections();

        /// <summary>CPU time of the calling thread in ns. Unlike wall-clock time it does not include other
        /// programs.</summary>
        internal static unsafe long ThreadNanoseconds()
        {
            const int ThreadCpuTime = 3;
            long* time = stackalloc long[2];
            clock_gettime(ThreadCpuTime, time);
            return (time[0] * 1000000000) + time[1];
        }

        internal void Print()
        {
            Result.Print("wall_ms", watch.Elapsed.TotalMilliseconds);
            Result.Print("cpu_ms", (Process.GetCurrentProcess().TotalProcessorTime - cpu).TotalMilliseconds);
            Result.Print("peak_mb", Kilobytes("/proc/self/status", "VmHWM:") / 1024.0);
            Result.Print("huge_mb", Kilobytes("/proc/self/smaps_rollup", "AnonHugePages:") / 1024.0);
            int[] now = Collections();
            for (int generation = 0; generation < now.Length; generation++)
            {
                Result.Print("collections_" + generation, now[generation] - collections[generation]);
            }
        }

        private static int[] Collections()
        {
            int[] counts = new int[GC.MaxGeneration + 1];
            for (int generation = 0; generation < counts.Length; generation++)
            {
                counts[generation] = GC.CollectionCount(generation);
            }

            return counts;
        }

        private static double Kilobytes(string file, string name)
        {
            foreach (string line in File.ReadAllLines(file))
            {
                if (line.StartsWith(name, StringComparison.Ordinal))
                {
                    return double.Parse(line.Substring(name.Length, line.Length - name.Length - 2).Trim());
                }
            }

            throw new InvalidOperationException("This system does not tell a process's " + name.TrimEnd(':') + ".");
        }

        [DllImport("libc")]
        private static extern unsafe int clock_gettime(int clock, long* time);
    }
}
