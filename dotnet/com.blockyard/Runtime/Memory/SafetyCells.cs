using System;

namespace Blockyard.Memory
{
    /// <summary>The cells of containers that end together: those in a thread's frame, or in an allocator.</summary>
    /// <remarks>One thread at a time. O(1) a container, and no garbage in the steady state.</remarks>
    internal sealed class SafetyCells
    {
        private Entry[] entries = Array.Empty<Entry>();
        private int count;

        /// <summary>The number of the allocator's innermost scope; 0 for none. Later scopes have higher
        /// numbers.</summary>
        internal long Scope { get; set; }

        /// <summary>A cell for a container. It ends with the container, its scope or all others, whichever comes
        /// first.</summary>
        internal int Take()
        {
            int cell = SafetyCell.Take();
            Add(cell);
            return cell;
        }

        /// <summary>Makes a cell end with the current scope, because its container took memory in it.</summary>
        internal void EndWithScope(int cell)
        {
            if (Scope > 0 && !(count > 0 && entries[count - 1].Cell == cell && entries[count - 1].Scope == Scope))
            {
                Add(cell);
            }
        }

        /// <summary>Ends the cells of a scope and of those within it; with 0 all.</summary>
        internal void EndFrom(long scope)
        {
            int kept = 0;
            for (int i = 0; i < count; i++)
            {
                if (entries[i].Scope < scope)
                {
                    entries[kept++] = entries[i];
                }
                else if (entries[i].IsLive)
                {
                    SafetyCell.Give(entries[i].Cell);
                }
            }

            count = kept;
        }

        internal void EndAll() => EndFrom(0);

        private void Add(int cell)
        {
            while (count > 0 && !entries[count - 1].IsLive)
            {
                count--;
            }

            if (count == entries.Length)
            {
                DropEnded();
            }

            entries[count++] = new Entry(cell, Scope);
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
            internal readonly long Scope;
            private readonly uint life;

            internal Entry(int cell, long scope)
            {
                Cell = cell;
                Scope = scope;
                life = SafetyCell.LifeOf(cell);
            }

            internal bool IsLive => SafetyCell.LifeOf(Cell) == life;
        }
    }
}
