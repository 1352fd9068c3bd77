#if BLOCKYARD_UNITY_COLLECTIONS
using System;
using AOT;
using Unity.Collections;

namespace Blockyard.Memory
{
    /// <summary>Lets Unity's NativeList, NativeArray and other collections allocate from a
    /// <see cref="MemorySource"/>.</summary>
    /// <remarks>
    /// Make it with Unity's <c>AllocatorHelper</c>, which registers it, and set <see cref="Source"/>. Blocks cost what
    /// the source's cost. With an allocator's source a free does nothing, and all blocks end with its reset:
    /// collections must not be used or disposed after that. A shape: it is untried in Unity, and compiles and is tested
    /// against shapes of Unity's types. Managed code only: the calls are not compiled by Burst.
    /// </remarks>
    public unsafe struct SourceAllocator : AllocatorManager.IAllocator
    {
        private AllocatorManager.AllocatorHandle handle;

        /// <summary>Where blocks come from; <see cref="Lifetime.Temp"/> unless it is set. Set it before the first
        /// block.</summary>
        public MemorySource Source { get; set; }

        /// <inheritdoc/>
        public AllocatorManager.AllocatorHandle Handle
        {
            get => handle;
            set => handle = value;
        }

        /// <inheritdoc/>
        public Allocator ToAllocator => handle.ToAllocator;

        /// <inheritdoc/>
        public bool IsCustomAllocator => handle.IsCustomAllocator;

        /// <summary>Whether blocks end without a free: those of an allocator.</summary>
        public bool IsAutoDispose => Source.IsAllocator;

        /// <inheritdoc/>
        public AllocatorManager.TryFunction Function => Call;

        /// <summary>Allocates, frees or resizes, as Unity asks.</summary>
        /// <param name="block">No address asks for a block, no items for a free.</param>
        /// <returns>0; -1 when there is no memory, and then nothing has changed.</returns>
        public int Try(ref AllocatorManager.Block block)
        {
            byte* old = (byte*)block.Range.Pointer;
            try
            {
                void* fresh = null;
                if (block.Range.Items > 0)
                {
                    fresh = Source.Malloc(block.Bytes, block.Alignment);
                    if (old != null)
                    {
                        long kept = Math.Min(block.AllocatedBytes, block.Bytes);
                        Buffer.MemoryCopy(old, fresh, kept, kept);
                    }
                }

                Source.Free(old);
                block.Range.Pointer = (IntPtr)fresh;
                block.AllocatedItems = block.Range.Items;
                return 0;
            }
            catch (OutOfMemoryException)
            {
                return -1;
            }
        }

        /// <summary>Ends the registration. The source is untouched.</summary>
        public void Dispose() => handle.Dispose();

        [MonoPInvokeCallback(typeof(AllocatorManager.TryFunction))]
        private static int Call(IntPtr state, ref AllocatorManager.Block block) =>
            ((SourceAllocator*)state)->Try(ref block);
    }
}
#endif
