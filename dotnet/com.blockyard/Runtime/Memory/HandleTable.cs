using System;

namespace Blockyard.Memory
{
    /// <summary>Maps index and generation to an item, for <see cref="UnmanagedAllocator{T}"/>: O(1), 16 bytes per
    /// handle.</summary>
    internal sealed unsafe class HandleTable
    {
        private Entry[] entries = Array.Empty<Entry>();
        private int count;
        private int firstFree = -1;
        private uint generation;

        /// <param name="seed">Differs between tables, so that a handle of another allocator is not found here.</param>
        internal HandleTable(uint seed)
        {
            generation = unchecked(seed * 0x9E3779B1u);
        }

        internal int Count => count;

        internal int Live { get; private set; }

        /// <summary>A freed item that can be used again; null when there is none.</summary>
        internal void* PeekFree() => firstFree >= 0 ? entries[firstFree].Item : null;

        /// <summary>Makes a handle for an item. With <paramref name="reuse"/>, the item is the one from
        /// <see cref="PeekFree"/>.</summary>
        internal int Add(void* item, bool reuse, out uint given)
        {
            int index;
            if (reuse)
            {
                index = firstFree;
                firstFree = entries[index].NextFree;
            }
            else
            {
                if (count == entries.Length)
                {
                    Array.Resize(ref entries, Math.Max(16, checked(count * 2)));
                }

                index = count++;
            }

            generation = unchecked(generation + 1);
            generation = generation == 0 ? 1 : generation;
            given = generation;
            entries[index] = new Entry { Item = item, Generation = generation };
            Live++;
            return index;
        }

        /// <summary>The item, or null when the handle is stale or foreign.</summary>
        internal void* Find(int index, uint given)
        {
            Entry[] all = entries;
            return (uint)index < (uint)count && all[index].Generation == given && given != 0 ? all[index].Item : null;
        }

        /// <summary>Ends a handle that <see cref="Find"/> found. Items from index <paramref name="keepFrom"/> on are
        /// not reused.</summary>
        internal void Remove(int index, int keepFrom)
        {
            entries[index].Generation = 0;
            Live--;
            if (index < keepFrom)
            {
                entries[index].NextFree = firstFree;
                firstFree = index;
            }
        }

        /// <summary>Ends all handles from index <paramref name="length"/> on.</summary>
        internal void Truncate(int length)
        {
            for (int i = length; i < count; i++)
            {
                if (entries[i].Generation != 0)
                {
                    Live--;
                }
            }

            count = length;
        }

        internal void Clear()
        {
            count = 0;
            Live = 0;
            firstFree = -1;
        }

        private struct Entry
        {
            internal void* Item;
            internal uint Generation;
            internal int NextFree;
        }
    }
}
