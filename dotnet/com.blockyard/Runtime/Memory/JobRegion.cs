using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>The header of a region for TempJob blocks. The blocks follow it.</summary>
    /// <remarks>
    /// A region lies at a multiple of its size, so masking a block's address gives its region. One thread owns a region
    /// and counts its own allocations and frees without atomics, in <see cref="ThreadState.JobLive"/>. Other threads
    /// count their frees in <see cref="Remote"/>, which starts at <see cref="Bias"/> so that it cannot reach zero while
    /// the region is owned. When the owner retires the region, it subtracts the bias and adds the number of live
    /// blocks. The thread that brings the count to zero returns the region to the pool.
    /// </remarks>
    [StructLayout(LayoutKind.Explicit, Size = HeaderSize)]
    internal unsafe struct JobRegion
    {
        internal const int Size = ThreadState.JobRegionSize;
        internal const int HeaderSize = 128;
        internal const uint LiveMagic = 0x4A6F6252;

        /// <summary>A block that needs more than this gets a region of its own.</summary>
        internal const int LargestShared = Size / 4;

        private const int RegionsPerSlab = 16;
        private const int Bias = 1 << 30;
        private const ulong Mask = ~((ulong)Size - 1);

        // The fields that are set once and the word that other threads count in lie on separate cache lines.
        [FieldOffset(12)]
        internal uint Magic;
        [FieldOffset(16)]
        internal byte* Raw;
        [FieldOffset(24)]
        internal JobRegion* Next;
        [FieldOffset(32)]
        internal long Bytes;
        [FieldOffset(64)]
        internal int Remote;

        private static readonly object Gate = new object();
        private static JobRegion* pool;
        private static long held;

        /// <summary>Bytes that all regions hold, including pooled ones.</summary>
        internal static long BytesHeld => Interlocked.Read(ref held);

        internal static JobRegion* Of(byte* block) => (JobRegion*)((ulong)block & Mask);

        /// <summary>A region for one owner, from the pool or from the runtime.</summary>
        internal static JobRegion* Take()
        {
            lock (Gate)
            {
                if (pool == null)
                {
                    AddSlab();
                }

                JobRegion* region = pool;
                pool = region->Next;
                Open(region);
                return region;
            }
        }

        /// <summary>A region with a single large block. Freeing the block frees the region.</summary>
        internal static byte* TakeLarge(long size, int alignment)
        {
            long bytes = size > long.MaxValue / 2 ? long.MaxValue : size + HeaderSize + alignment + Size;
            byte* raw = RawMemory.Allocate(bytes);
            JobRegion* region = (JobRegion*)RawMemory.Align(raw, Size);
            *region = new JobRegion { Magic = LiveMagic, Raw = raw, Remote = 1, Bytes = bytes };
            Interlocked.Add(ref held, bytes);
            return RawMemory.Align((byte*)region + HeaderSize, alignment);
        }

        internal static void Open(JobRegion* region)
        {
            region->Remote = Bias;
            region->Magic = LiveMagic;
        }

        /// <summary>Whether all blocks are freed. Only the owner may ask.</summary>
        /// <param name="region">The region.</param>
        /// <param name="live">Its blocks, minus those that the owner freed.</param>
        internal static bool IsEmpty(JobRegion* region, long live) => live == Bias - Volatile.Read(ref region->Remote);

        /// <summary>Ends the ownership. Called by the owner, or by the finalizer after the owner's thread has
        /// ended.</summary>
        /// <param name="region">The region.</param>
        /// <param name="live">Its blocks, minus those that the owner freed.</param>
        internal static void Retire(JobRegion* region, long live)
        {
            if (Interlocked.Add(ref region->Remote, (int)live - Bias) == 0)
            {
                Recycle(region);
            }
        }

        /// <summary>Counts a free by a thread that does not own the region.</summary>
        internal static void FreeRemotely(JobRegion* region)
        {
            if (Interlocked.Decrement(ref region->Remote) == 0)
            {
                Recycle(region);
            }
        }

        private static void Recycle(JobRegion* region)
        {
            region->Magic = 0;
            if (region->Raw != null)
            {
                Interlocked.Add(ref held, -region->Bytes);
                RawMemory.Free(region->Raw);
                return;
            }

            lock (Gate)
            {
                region->Next = pool;
                pool = region;
            }
        }

        private static void AddSlab()
        {
            const long Bytes = (long)Size * (RegionsPerSlab + 1);
            byte* first = RawMemory.Align(RawMemory.Allocate(Bytes), Size);
            Interlocked.Add(ref held, Bytes);
            for (int i = RegionsPerSlab - 1; i >= 0; i--)
            {
                JobRegion* region = (JobRegion*)(first + ((long)i * Size));
                *region = new JobRegion { Next = pool };
                pool = region;
            }
        }
    }
}
