using System;

namespace Blockyard.Memory
{
    /// <summary>The allocators that containers refer to by number. Any thread; only adding and removing take a
    /// lock.</summary>
    internal static unsafe class SourceTable
    {
        private static readonly object Gate = new object();
        private static Slot[] slots = new Slot[16];
        private static int count = 1;
        private static int firstFree;

        /// <summary>What the table needs from an allocator.</summary>
        internal interface ISource
        {
            /// <summary>The cells of the containers in it.</summary>
            SafetyCells Cells { get; }

            byte* Take(long size, int alignment);
        }

        /// <summary>Gives an allocator a slot above 0 and a generation of that slot.</summary>
        internal static int Add(ISource source, out uint generation)
        {
            lock (Gate)
            {
                int slot = firstFree;
                if (slot != 0)
                {
                    firstFree = slots[slot].NextFree;
                }
                else
                {
                    if (count == slots.Length)
                    {
                        // A new array, because readers take no lock.
                        Slot[] larger = new Slot[count * 2];
                        Array.Copy(slots, larger, count);
                        slots = larger;
                    }

                    slot = count++;
                }

                generation = ++slots[slot].Generation;
                slots[slot].Source = source;
                return slot;
            }
        }

        internal static void Remove(int slot, uint generation)
        {
            lock (Gate)
            {
                ISource? source = slots[slot].Source;
                if (slots[slot].Generation == generation && source != null)
                {
                    source.Cells.EndAll();
                    slots[slot].Source = null;
                    slots[slot].NextFree = firstFree;
                    firstFree = slot;
                }
            }
        }

        internal static ISource Find(int slot, uint generation)
        {
            Slot entry = slots[slot];
            if (entry.Source == null || entry.Generation != generation)
            {
                throw new ObjectDisposedException("UnmanagedAllocator");
            }

            return entry.Source;
        }

        private struct Slot
        {
            internal ISource? Source;
            internal uint Generation;
            internal int NextFree;
        }
    }
}
