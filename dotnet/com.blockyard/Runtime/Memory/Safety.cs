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
                    : "The container was disposed, its frame or scope has ended, or its allocator was reset.");
            }
        }

        /// <summary>How often the container has changed.</summary>
        internal uint Changes => SafetyCell.ChangesOf(cell);

        /// <summary>Before the container adds or removes something.</summary>
        internal void Change()
        {
            Check();
            SafetyCell.ChangesOf(cell)++;
        }

        /// <summary>During an enumeration that began after some changes.</summary>
        /// <exception cref="InvalidOperationException">There were more.</exception>
        internal void CheckUnchanged(uint changes)
        {
            Check();
            if (Changes != changes)
            {
                throw new InvalidOperationException("The container was changed while it was enumerated.");
            }
        }

        /// <summary>Before the container takes further memory.</summary>
        /// <param name="block">The block that it has.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <exception cref="InvalidOperationException">It is in another thread's Temp.</exception>
        internal unsafe void BeforeGrowth(void* block, MemorySource source)
        {
            if (source.Lifetime == Lifetime.Temp && !ThreadMemory.Current.HasTemp((byte*)block))
            {
                throw new InvalidOperationException(
                    "A container in Temp grows only on the thread that made it, in the same frame.");
            }
        }

        /// <summary>After the container took further memory, which an allocator frees at the end of its
        /// scope.</summary>
        internal void EndWithScope(MemorySource source)
        {
            if (source.IsAllocator)
            {
                source.Cells.EndWithScope(cell);
            }
        }

        internal void End() => SafetyCell.Give(cell);
    }
}
