#if !BLOCKYARD_RELEASE
using System;

namespace Blockyard.Memory
{
    /// <summary>Lets checked builds catch the use of a container whose memory is gone.</summary>
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

        /// <exception cref="ObjectDisposedException">This copy or another one was disposed, or the frame has
        /// ended.</exception>
        internal void Check()
        {
            if (cell == null || *cell != life)
            {
                throw new ObjectDisposedException(
                    "container",
                    cell == null
                    ? "The container was not created, or was disposed."
                    : "The container was disposed, its frame has ended, or its allocator was reset.");
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
