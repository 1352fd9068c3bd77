#if !BLOCKYARD_RELEASE
using System;

namespace Blockyard.Memory
{
    /// <summary>What a container remembers in checked builds, so that its use after its memory is gone is caught.</summary>
    internal readonly unsafe struct Safety
    {
        private readonly uint* cell;
        private readonly uint life;
        private readonly bool owned;

        internal Safety(MemorySource source)
        {
            cell = source.SafetyCellOf(out owned);
            life = *cell;
        }

        /// <exception cref="ObjectDisposedException">The memory was freed, by this copy or another, or its frame has ended.</exception>
        internal void Check()
        {
            if (cell == null || *cell != life)
            {
                throw new ObjectDisposedException(
                    "container", cell == null
                        ? "The container was not created, or was disposed of."
                        : "The container's memory is gone: it was disposed of, its frame has ended, or its allocator was reset.");
            }
        }

        internal void End()
        {
            Check();
            if (owned)
            {
                SafetyCell.Give(cell);
            }
        }
    }
}
#endif
