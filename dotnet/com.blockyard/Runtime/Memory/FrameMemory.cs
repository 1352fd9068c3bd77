using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>Where frames end, for <see cref="Lifetime.Temp"/> and <see cref="Lifetime.TempJob"/>.</summary>
    /// <remarks>A thread that never ends a frame is safe: its Temp blocks overflow into TempJob until the thread ends.
    /// The memory of a thread that has ended is freed when others start, after some frames, or by the
    /// collector.</remarks>
    public static class FrameMemory
    {
        private static long framesEnded;
        private static int tempJobFrames = 4;
        private static long tempCapacity = 256 * 1024;
        private static long tempCapacityLimit = 16 * 1024 * 1024;

        /// <summary>The number of calls of <see cref="EndFrame"/>.</summary>
        public static long FramesEnded => Volatile.Read(ref framesEnded);

        /// <summary>Frames that a TempJob block may live before it is reported; 4 by default, at least 1.</summary>
        public static int TempJobFrames
        {
            get => tempJobFrames;
            set => tempJobFrames = value >= 1
                ? value
                : throw new ArgumentOutOfRangeException(nameof(value), value, "At least one frame.");
        }

        /// <summary>Bytes of a new thread's Temp region; 256 KiB by default, at least 1 KiB.</summary>
        public static long TempCapacity
        {
            get => Interlocked.Read(ref tempCapacity);
            set => Interlocked.Exchange(ref tempCapacity, Checked(value));
        }

        /// <summary>The size that a Temp region may grow to, in bytes; 16 MiB by default.</summary>
        public static long TempCapacityLimit
        {
            get => Interlocked.Read(ref tempCapacityLimit);
            set => Interlocked.Exchange(ref tempCapacityLimit, Checked(value));
        }

        /// <summary>The calling thread's use of Temp.</summary>
        public static LifetimeStatistics ThreadStatistics => ThreadMemory.Current.Statistics;

        /// <summary>Bytes that the regions of TempJob hold, including pooled ones.</summary>
        public static long TempJobBytesHeld => JobRegion.BytesHeld;

        /// <summary>
        /// Ends the program's frame. The one thread that owns the frame calls it. It calls
        /// <see cref="EndThreadFrame"/>, ages TempJob by one frame, and reports each block that is older than
        /// <see cref="TempJobFrames"/> once; such blocks stay valid. Once per 64 frames it gives back the memory of
        /// threads that have ended, and what TempJob has not needed meanwhile: at most 16 MiB.
        /// </summary>
        public static void EndFrame()
        {
            long tempBytes = ThreadMemory.Current.EndFrame();
            long ended = Interlocked.Increment(ref framesEnded);
            BlockTracker.ReportOverdue(ended, tempJobFrames);
            if (ended % JobRegion.FramesBetweenReturns == 0)
            {
                ThreadMemory.FreeEnded();
                JobRegion.GiveBackUnneeded();
            }

#if NET8_0_OR_GREATER
            if (AllocationCounts.AreOn)
            {
                MemoryEvents.Log.FrameEnd(ended, tempBytes);
                MemoryEvents.Log.CheckListeners();
            }
#else
            _ = tempBytes;
#endif
        }

        /// <summary>
        /// Ends the calling thread's frame and frees all its Temp blocks, including overflowed ones. O(1), plus one
        /// step for each block that overflowed. Calls the runtime only when the region grows towards the frame's peak.
        /// </summary>
        public static void EndThreadFrame() => ThreadMemory.Current.EndFrame();

        /// <summary>Sets the size of the calling thread's Temp region. Call it between frames.</summary>
        /// <param name="bytes">At least 1 KiB.</param>
        /// <exception cref="InvalidOperationException">The region holds blocks of this frame.</exception>
        public static void SetThreadTempCapacity(long bytes) => ThreadMemory.Current.SetCapacity(Checked(bytes));

        /// <summary>All threads' use of Temp. Other threads' counts may be slightly out of date.</summary>
        public static IReadOnlyList<LifetimeStatistics> GetStatistics() => ThreadMemory.StatisticsOfAll();

        /// <summary>Writes <see cref="GetStatistics"/> as text.</summary>
        /// <param name="writer">The destination.</param>
        public static void WriteStatistics(TextWriter writer)
        {
            foreach (LifetimeStatistics thread in GetStatistics())
            {
                writer.WriteLine(thread);
            }

            writer.WriteLine("temp job: " + TempJobBytesHeld + " B held, frames ended " + FramesEnded);
        }

        private static long Checked(long bytes) => bytes >= 1024
            ? bytes
            : throw new ArgumentOutOfRangeException(nameof(bytes), bytes, "A Temp region has at least 1024 bytes.");
    }
}
