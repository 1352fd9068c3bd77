using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>The head of a region that TempJob blocks are bumped out of; the blocks follow it.</summary>
    /// <remarks>
    /// A region lies at a multiple of its size, so a block finds it by masking. One thread owns it and counts its own
    /// allocations and frees without atomics, in <see cref="ThreadState.JobLive"/>; other threads count their frees in
    /// <see cref="Remote"/>, which starts at <see cref="Bias"/> so that it can't reach zero while the region is owned. When
    /// the owner retires the region it takes the bias off and adds what is live, and whoever brings it to zero puts the
    /// region back into the pool.
    /// </remarks>
    [StructLayout(LayoutKind.Explicit, Size = HeaderSize)]
    internal unsafe struct JobRegion
    {
        internal const int Size = ThreadState.JobRegionSize;
        internal const int HeaderSize = 128;
        internal const uint LiveMagic = 0x4A6F6252;

        /// <summary>A block that would take more than this has a region of its own.</summary>
        internal const int LargestShared = Size / 4;

        private const int RegionsPerSlab = 16;
        private const int Bias = 1 << 30;
        private const ulong Mask = ~((ulong)Size - 1);

        // What is set once and the word that others count in, on cache lines of their own.
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

        /// <summary>Bytes that all regions hold, pooled ones included.</summary>
        internal static long BytesHeld => Interlocked.Read(ref held);

        internal static JobRegion* Of(byte* block) => (JobRegion*)((ulong)block & Mask);

        /// <summary>A region for one owner, from the pool or else from the runtime.</summary>
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

        /// <summary>A region with one block that is too large to share; freed to the runtime with it.</summary>
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

        /// <summary>Whether all blocks are freed; asked by the owner.</summary>
        /// <param name="region">The region.</param>
        /// <param name="live">Its blocks, less those that the owner freed.</param>
        internal static bool IsEmpty(JobRegion* region, long live) => live == Bias - Volatile.Read(ref region->Remote);

        /// <summary>Ends ownership, by the owner or, after its thread has ended, on its behalf.</summary>
        /// <param name="region">The region.</param>
        /// <param name="live">Its blocks, less those that the owner freed.</param>
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
