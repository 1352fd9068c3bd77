using System;
using System.Diagnostics;
using System.Reflection;
using Blockyard.Memory;

namespace Blockyard.Benchmarks
{
    /// <summary>ns to allocate and to free a block on each lifetime and with <c>Marshal.AllocHGlobal</c>: 1000 blocks,
    /// then all are freed.</summary>
    /// <remarks>
    /// The figures include the loops, which store a pointer and read it again. The loops alone are measured as
    /// <c>loop</c>. The clock is a system call, so it is read once per <see cref="Repeats"/> repeats.
    /// </remarks>
    internal static unsafe class LifetimesBenchmark
    {
        private const int Blocks = 1000;
        private const int Repeats = 16;
        private const int Rounds = 150;
        private const int WarmUpMilliseconds = 1000;
        private static readonly void** Held =
            (void**)System.Runtime.InteropServices.Marshal.AllocHGlobal(Blocks * sizeof(void*));
        private static void* last;

        /// <param name="layout">0 to 7: where in memory the loops come to lie, see <see cref="Shift"/>.</param>
        internal static void Run(int layout)
        {
            Shift(layout);
            LeakDetection.Mode = LeakMode.Off;
            Action[] ways =
            {
                Loop, Marshal, Temp, TempJob, Persistent, TempOfThread, TempJobOfThread, PersistentAtOnce,
#if NET8_0_OR_GREATER
                Native, NativeAtOnce,
#else
                Marshal, MarshalAtOnce,
#endif
            };

            // On Mono AllocHGlobal is also what "native_memory" stands for.
            string[] names =
            {
                "loop", "hglobal", "temp", "temp_job", "persistent", "temp_of_thread", "temp_job_of_thread",
                "persistent_at_once", "native_memory", "native_memory_at_once",
            };

            // Limited by time: .NET compiles a method with full optimisation only after it has run for a while.
            Stopwatch warm = Stopwatch.StartNew();
            for (int round = 0, measured = 0; measured < Rounds; round++)
            {
                bool isWarm = warm.ElapsedMilliseconds > WarmUpMilliseconds;
                measured += isWarm ? 1 : 0;
                for (int i = 0; i < names.Length; i++)
                {
                    int which = (round + i) % names.Length;
                    Action way = ways[which];
                    long start = ProcessCost.ThreadNanoseconds();
                    for (int repeat = 0; repeat < Repeats; repeat++)
                    {
                        way();
                    }

                    long took = ProcessCost.ThreadNanoseconds() - start;
                    if (isWarm)
                    {
                        Result.Add(names[which] + "_ns", took / (double)(Blocks * Repeats));
                    }
                }
            }
        }

        /// <summary>Shifts the addresses of the code that is compiled after this, by compiling a number of small
        /// methods.</summary>
        /// <remarks>
        /// The time of a loop of a few nanoseconds depends on the addresses of its branches. On processors with Intel's
        /// "jump conditional code" erratum the empty loop takes twice as long at some addresses as at others, so the
        /// benchmark measures several.
        /// </remarks>
        private static void Shift(int methods)
        {
            Type[] each =
            {
                typeof(byte), typeof(short), typeof(int), typeof(long), typeof(float), typeof(double), typeof(char),
            };
            MethodInfo filler = ((Action)Filler<byte>).Method.GetGenericMethodDefinition();
            for (int i = 0; i < methods; i++)
            {
                filler.MakeGenericMethod(each[i]).Invoke(null, null);
            }
        }

        private static void Filler<T>()
            where T : unmanaged
        {
            last = (void*)(IntPtr)sizeof(T);
        }

        private static void Loop()
        {
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = at;
            }

            for (void** at = Held; at < end; at++)
            {
                last = *at;
            }
        }

        private static void Marshal()
        {
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = (void*)System.Runtime.InteropServices.Marshal.AllocHGlobal(64);
            }

            for (void** at = Held; at < end; at++)
            {
                System.Runtime.InteropServices.Marshal.FreeHGlobal((IntPtr)(*at));
            }
        }

        private static void Temp()
        {
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = UnmanagedMemory.Malloc(64, 8, Lifetime.Temp);
            }

            for (void** at = Held; at < end; at++)
            {
                UnmanagedMemory.Free(*at, Lifetime.Temp);
            }

            FrameMemory.EndThreadFrame();
        }

        private static void TempJob()
        {
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob);
            }

            for (void** at = Held; at < end; at++)
            {
                UnmanagedMemory.Free(*at, Lifetime.TempJob);
            }
        }

        private static void TempOfThread()
        {
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = thread.MallocTemp(64, 8);
            }

            for (void** at = Held; at < end; at++)
            {
                thread.FreeTemp(*at);
            }

            FrameMemory.EndThreadFrame();
        }

        private static void TempJobOfThread()
        {
            ThreadAllocator thread = UnmanagedMemory.ThisThread;
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = thread.MallocTempJob(64, 8);
            }

            for (void** at = Held; at < end; at++)
            {
                thread.FreeTempJob(*at);
            }
        }

#if NET8_0_OR_GREATER
        private static void Native()
        {
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = System.Runtime.InteropServices.NativeMemory.Alloc((UIntPtr)64);
            }

            for (void** at = Held; at < end; at++)
            {
                System.Runtime.InteropServices.NativeMemory.Free(*at);
            }
        }

        private static void NativeAtOnce()
        {
            for (int i = 0; i < Blocks; i++)
            {
                System.Runtime.InteropServices.NativeMemory.Free(
                    System.Runtime.InteropServices.NativeMemory.Alloc((UIntPtr)64));
            }
        }
#else
        private static void MarshalAtOnce()
        {
            for (int i = 0; i < Blocks; i++)
            {
                System.Runtime.InteropServices.Marshal.FreeHGlobal(
                    System.Runtime.InteropServices.Marshal.AllocHGlobal(64));
            }
        }
#endif

        private static void PersistentAtOnce()
        {
            for (int i = 0; i < Blocks; i++)
            {
                UnmanagedMemory.Free(UnmanagedMemory.Malloc(64, 8, Lifetime.Persistent), Lifetime.Persistent);
            }
        }

        private static void Persistent()
        {
            void** end = Held + Blocks;
            for (void** at = Held; at < end; at++)
            {
                *at = UnmanagedMemory.Malloc(64, 8, Lifetime.Persistent);
            }

            for (void** at = Held; at < end; at++)
            {
                UnmanagedMemory.Free(*at, Lifetime.Persistent);
            }
        }
    }
}
