using System;
using Blockyard.Memory;
#if BLOCKYARD_BURST
using Unity.Burst;
#endif
using Unity.Collections;
using Unity.Jobs;
using UnityEngine;

namespace Blockyard.Samples
{
    /// <summary>A job over Blockyard's memory, with scratch memory of its own.</summary>
    public sealed class SmoothHeights : MonoBehaviour
    {
        private unsafe void Update()
        {
            UnmanagedArray<float> heights = new UnmanagedArray<float>(1024, Lifetime.TempJob);
            Span<byte> scratch = UnmanagedMemory.MallocSpan<byte>(1024 * sizeof(float), Lifetime.TempJob);
            using (NativeArrayView<float> view = heights.AsNativeArray())
            {
                fixed (byte* start = scratch)
                {
                    new Smooth { Heights = view.Array, Scratch = new BumpRegion(start, scratch.Length) }.Run();
                }
            }

            UnmanagedMemory.Free(scratch, Lifetime.TempJob);
            heights.Dispose();
        }

        /// <summary>Only what Burst can compile: a NativeArray, a BumpRegion, pointers and numbers.</summary>
#if BLOCKYARD_BURST
        [BurstCompile]
#endif
        private struct Smooth : IJob
        {
            public NativeArray<float> Heights;
            public BumpRegion Scratch;

            public void Execute()
            {
                Ptr<float> sums = Scratch.TryAllocate<float>(Heights.Length);
                if (sums.IsNull)
                {
                    return;
                }

                for (int i = 0; i < Heights.Length; i++)
                {
                    sums[i] = (Heights[Math.Max(i - 1, 0)] + Heights[i]) * 0.5f;
                }

                for (int i = 0; i < Heights.Length; i++)
                {
                    Heights[i] = sums[i];
                }
            }
        }
    }
}
