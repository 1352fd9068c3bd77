#pragma warning disable CS0162 // checks are a constant in Unity
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>The part that all containers have in common: a block that the copies of a container share, its source,
    /// and whether the block is still there.</summary>
    internal unsafe struct ContainerMemory
    {
        private void* block;
        private MemorySource source;
        private Safety safety;

        /// <summary>Whether this copy has a block.</summary>
        internal readonly bool IsCreated => block != null;

        /// <summary>The block. Throws when it is gone and checks are on.</summary>
        internal readonly void* Block
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get
            {
                Check();
                return block;
            }
        }

        /// <summary>Takes a block. Called in place, because Mono copies the result of a constructor.</summary>
        /// <param name="size">Bytes of the block; its contents are unspecified.</param>
        /// <param name="alignment">Its alignment.</param>
        /// <param name="from">Where it comes from.</param>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void Create(long size, int alignment, MemorySource from)
        {
            source = from;
            block = from.Allocate(size, alignment);
            if (Checks.AreOn)
            {
                safety = new Safety(from);
            }
        }

        /// <summary>Takes a block that is a cleared <typeparamref name="THead"/>.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void Create<THead>(MemorySource from)
            where THead : unmanaged
        {
            Create(sizeof(THead), sizeof(void*), from);
            *(THead*)block = default;
        }

        /// <summary>Throws when the block is gone and checks are on.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal readonly void Check()
        {
            if (Checks.AreOn)
            {
                safety.Check();
            }
        }

        /// <summary>Called before something is added or removed, which ends enumerations when checks are
        /// on.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal readonly void Change()
        {
            if (Checks.AreOn)
            {
                safety.Change();
            }
        }

        /// <summary>What an enumeration remembers, for <see cref="CheckUnchanged"/>.</summary>
        internal readonly uint Changes => Checks.AreOn ? safety.Changes : 0;

        /// <summary>Throws when the block is gone or was changed, and checks are on.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal readonly void CheckUnchanged(uint changes)
        {
            if (Checks.AreOn)
            {
                safety.CheckUnchanged(changes);
            }
        }

        /// <summary>Further memory from the same source. <see cref="Keep"/> follows, unless it is freed.</summary>
        internal readonly byte* Allocate(long size, int alignment)
        {
            BeforeGrowth();
            return source.Allocate(size, alignment);
        }

        /// <summary>Makes further memory larger, in place if possible. Null allocates. A failure changes nothing.
        /// <see cref="Keep"/> follows.</summary>
        /// <param name="further">The memory.</param>
        /// <param name="used">Bytes at its start that are kept; at most its size.</param>
        /// <param name="size">Its new size in bytes.</param>
        /// <param name="alignment">The alignment that it was allocated with.</param>
        internal readonly byte* Resize(void* further, long used, long size, int alignment)
        {
            BeforeGrowth();
            return source.Resize((byte*)further, used, size, alignment);
        }

        /// <summary>Called when the container has taken all memory that it grows by: it ends with that.</summary>
        internal readonly void Keep()
        {
            if (Checks.AreOn)
            {
                safety.EndWithScope(source);
            }
        }

        internal readonly void Free(void* further) => source.Free(further);

        /// <summary>Frees the block. Other copies of the container are invalid from now on.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void End()
        {
            source.Free(Block);
            block = null;
            if (Checks.AreOn)
            {
                safety.End();
                safety = default;
            }
        }

        private readonly void BeforeGrowth()
        {
            if (Checks.AreOn)
            {
                safety.BeforeGrowth(block, source);
            }
        }
    }
}
