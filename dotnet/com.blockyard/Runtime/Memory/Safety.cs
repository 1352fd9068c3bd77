using System;

namespace Blockyard.Memory
{
    /// <summary>Catches the use of a container whose memory is gone. Copies of a container share its cell.</summary>
    internal readonly struct Safety
    {
        private readonly int cell;
        private readonly uint life;

        internal Safety(MemorySource source)
        {
            cell = source.TakeSafetyCell();
            life = SafetyCell.LifeOf(cell);
        }

        /// <exception cref="ObjectDisposedException">This copy or another one was disposed, or the frame has
        /// ended.</exception>
        internal void Check()
        {
            if (SafetyCell.LifeOf(cell) != life)
            {
                throw new ObjectDisposedException(
                    "container",
                    life == 0
                    ? "The container was not created, or was disposed."
                    : "The container was disposed, its frame has ended, or its allocator was reset.");
            }
        }

        internal void End() => SafetyCell.Give(cell);
    }
}
