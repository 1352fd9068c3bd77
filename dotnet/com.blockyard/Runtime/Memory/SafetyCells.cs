using System;

namespace Blockyard.Memory
{
    /// <summary>The cells of containers that end together: those in a thread's frame, or in an allocator.</summary>
    /// <remarks>One thread at a time. O(1) a container, and no garbage in the steady state.</remarks>
    internal sealed class SafetyCells
    {
        private Entry[] entries = Array.Empty<Entry>();
        private int count;

        /// <summary>A cell for a container. It ends with the container or with all others, whichever comes
        /// first.</summary>
        internal int Take()
        {
            while (count > 0 && !entries[count - 1].IsLive)
            {
                count--;
            }

            if (count == entries.Length)
            {
                DropEnded();
            }

            int cell = SafetyCell.Take();
            entries[count++] = new Entry(cell);
            return cell;
        }

        internal void EndAll()
        {
            for (int i = 0; i < count; i++)
            {
                if (entries[i].IsLive)
                {
                    SafetyCell.Give(entries[i].Cell);
                }
            }

            count = 0;
        }

        /// <summary>Makes room by dropping the cells of disposed containers, and grows if most are live.</summary>
        private void DropEnded()
        {
            int live = 0;
            for (int i = 0; i < count; i++)
            {
                if (entries[i].IsLive)
                {
                    entries[live++] = entries[i];
                }
            }

            count = live;
            if (live >= entries.Length / 2)
            {
                Array.Resize(ref entries, Math.Max(16, entries.Length * 2));
            }
        }

        private readonly struct Entry
        {
            internal readonly int Cell;
            private readonly uint life;

            internal Entry(int cell)
            {
                Cell = cell;
                life = SafetyCell.LifeOf(cell);
            }

            internal bool IsLive => SafetyCell.LifeOf(Cell) == life;
        }
    }
}
