using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using Blockyard.Memory;

namespace Blockyard.Benchmarks
{
    /// <summary>ns to allocate and to free a block on each lifetime, beside <c>Marshal.AllocHGlobal</c>: 1000, then all freed.</summary>
    internal static unsafe class LifetimesBenchmark
    {
        private const int Blocks = 1000;
        private const int Rounds = 300;
        private const int WarmUps = 50;
        private static readonly IntPtr[] Held = new IntPtr[Blocks];

        internal static void Run()
        {
            LeakDetection.Mode = LeakMode.Off;
            string[] names = { "hglobal", "temp", "temp_job", "persistent" };
            List<double>[] times = new List<double>[names.Length];
            for (int i = 0; i < names.Length; i++)
            {
                times[i] = new List<double>();
            }

            for (int round = 0; round < Rounds; round++)
            {
                for (int i = 0; i < names.Length; i++)
                {
                    int which = (round + i) % names.Length;
                    long start = ProcessCost.ThreadNanoseconds();
                    if (which == 0)
                    {
                        Marshal();
                    }
                    else
                    {
                        ByLifetime((Lifetime)(which - 1));
                    }

                    long took = ProcessCost.ThreadNanoseconds() - start;
                    if (round >= WarmUps)
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
            for (int i = 0; i < Blocks; i++)
            {
                Held[i] = System.Runtime.InteropServices.Marshal.AllocHGlobal(64);
            }

            for (int i = 0; i < Blocks; i++)
            {
                System.Runtime.InteropServices.Marshal.FreeHGlobal(Held[i]);
            }
        }

        private static void ByLifetime(Lifetime lifetime)
        {
            for (int i = 0; i < Blocks; i++)
            {
                Held[i] = (IntPtr)UnmanagedMemory.Malloc(64, 8, lifetime);
            }

            for (int i = 0; i < Blocks; i++)
            {
                UnmanagedMemory.Free((void*)Held[i], lifetime);
            }

            if (lifetime == Lifetime.Temp)
            {
                FrameMemory.EndThreadFrame();
            }
        }
    }
}
