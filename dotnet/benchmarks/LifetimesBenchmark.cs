using System;
using System.Collections.Generic;
using System.Diagnostics;
using Blockyard.Memory;

namespace Blockyard.Benchmarks
{
    /// <summary>ns to allocate and to free a block on each lifetime, beside <c>Marshal.AllocHGlobal</c>: 1000, then all freed.</summary>
    internal static unsafe class LifetimesBenchmark
    {
        private const int Blocks = 1000;
        private const int Rounds = 300;
        private const int WarmUpMilliseconds = 1000;
        private static readonly void** Held = (void**)System.Runtime.InteropServices.Marshal.AllocHGlobal(Blocks * sizeof(void*));

        internal static void Run()
        {
            LeakDetection.Mode = LeakMode.Off;
            Action[] ways = { Marshal, Temp, TempJob, Persistent };
            string[] names = { "hglobal", "temp", "temp_job", "persistent" };
            List<double>[] times = new List<double>[names.Length];
            for (int i = 0; i < names.Length; i++)
            {
                times[i] = new List<double>();
            }

            // By time: .NET compiles a method for good only after it was in use for a while.
            Stopwatch warm = Stopwatch.StartNew();
            for (int round = 0, measured = 0; measured < Rounds; round++)
            {
                bool isWarm = warm.ElapsedMilliseconds > WarmUpMilliseconds;
                measured += isWarm ? 1 : 0;
                for (int i = 0; i < names.Length; i++)
                {
                    int which = (round + i) % names.Length;
                    long start = ProcessCost.ThreadNanoseconds();
                    ways[which]();
                    long took = ProcessCost.ThreadNanoseconds() - start;
                    if (isWarm)
                    {
                        times[which].Add(took / (double)Blocks);
                    }
                }
            }

            for (int i = 0; i < names.Length; i++)
            {
                Result.Print(names[i] + "_ns", Result.Median(times[i]));
            }
        }

        private static void Marshal()
        {
            void** held = Held;
            for (int i = 0; i < Blocks; i++)
            {
                held[i] = (void*)System.Runtime.InteropServices.Marshal.AllocHGlobal(64);
            }

            for (int i = 0; i < Blocks; i++)
            {
                System.Runtime.InteropServices.Marshal.FreeHGlobal((IntPtr)held[i]);
            }
        }

        private static void Temp()
        {
            void** held = Held;
            for (int i = 0; i < Blocks; i++)
            {
                held[i] = UnmanagedMemory.Malloc(64, 8, Lifetime.Temp);
            }

            for (int i = 0; i < Blocks; i++)
            {
                UnmanagedMemory.Free(held[i], Lifetime.Temp);
            }

            FrameMemory.EndThreadFrame();
        }

        private static void TempJob()
        {
            void** held = Held;
            for (int i = 0; i < Blocks; i++)
            {
                held[i] = UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob);
            }

            for (int i = 0; i < Blocks; i++)
            {
                UnmanagedMemory.Free(held[i], Lifetime.TempJob);
            }
        }

        private static void Persistent()
        {
            void** held = Held;
            for (int i = 0; i < Blocks; i++)
            {
                held[i] = UnmanagedMemory.Malloc(64, 8, Lifetime.Persistent);
            }

            for (int i = 0; i < Blocks; i++)
            {
                UnmanagedMemory.Free(held[i], Lifetime.Persistent);
            }
        }
    }
}
