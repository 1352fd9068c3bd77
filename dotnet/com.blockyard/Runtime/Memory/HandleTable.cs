using System;
using System.Runtime.InteropServices;

namespace Blockyard.Memory
{
    /// <summary>Maps index and generation to an item, for <see cref="UnmanagedAllocator{T}"/>: O(1), 12 bytes per
    /// handle, in parts that never move.</summary>
    internal sealed unsafe class HandleTable
    {
        /// <summary>Entries of a part. The first part grows up to that length; the parts are arrays of 96 KiB, which
        /// the collector neither scans nor moves.</summary>
        private const int Shift = 13;
        private const int PartLength = 1 << Shift;

        private Entry[][] parts = { Array.Empty<Entry>() };
        private int capacity;
        private int count;
        private int firstFree = -1;
        private uint generation;

        /// <param name="seed">Differs between tables, so that a handle of another allocator is not found here.</param>
        internal HandleTable(uint seed)
        {
            generation = unchecked(seed * 0x9E3779B1u) | 1;
        }

        internal int Count => count;

        internal int Live { get; private set; }

        /// <summary>A freed item that can be used again; null when there is none.</summary>
        internal void* PeekFree() => firstFree >= 0 ? At(firstFree).Item : null;

        /// <summary>Makes a handle for an item. With <paramref name="reuse"/>, the item is the one from
        /// <see cref="PeekFree"/>.</summary>
        internal int Add(void* item, bool reuse, out uint given)
        {
            int index;
            if (reuse)
            {
                index = firstFree;
                firstFree = At(index).NextFree;
            }
            else
            {
                if (count == capacity)
                {
                    AddPart();
                }

                index = count++;
            }

            generation = unchecked(generation + 2);
            given = generation;
            At(index) = new Entry { Item = item, Generation = generation };
            Live++;
            return index;
        }

        /// <summary>The item, or null when the handle is stale or foreign.</summary>
        internal void* Find(int index, uint given)
        {
            if ((uint)index >= (uint)count)
            {
                return null;
            }

            ref Entry entry = ref parts[index >> Shift][index & (PartLength - 1)];
            return entry.Generation == given && entry.IsLive ? entry.Item : null;
        }

        /// <summary>Ends a handle that <see cref="Find"/> found. Items from index <paramref name="keepFrom"/> on are
        /// not reused.</summary>
        internal void Remove(int index, int keepFrom)
        {
            bool isReused = index < keepFrom;
            At(index).NextFree = isReused ? firstFree : -1;
            firstFree = isReused ? index : firstFree;
            Live--;
        }

        /// <summary>Ends all handles from index <paramref name="length"/> on.</summary>
        internal void Truncate(int length)
        {
            for (int i = length; i < count; i++)
            {
                Live -= At(i).IsLive ? 1 : 0;
            }

            count = length;
        }

        internal void Clear()
        {
            count = 0;
            Live = 0;
            firstFree = -1;
        }

        private ref Entry At(int index) => ref parts[index >> Shift][index & (PartLength - 1)];

        private void AddPart()
        {
            if (capacity < PartLength)
            {
                capacity = Math.Max(16, capacity * 2);
                Array.Resize(ref parts[0], capacity);
                return;
            }

            int part = capacity >> Shift;
            int grown = checked(capacity + PartLength);
            if (part == parts.Length)
            {
                Array.Resize(ref parts, part * 2);
            }

            parts[part] = new Entry[PartLength];
            capacity = grown;
        }

        /// <summary>Packed, so that it takes 12 bytes and not 16.</summary>
        [StructLayout(LayoutKind.Sequential, Pack = sizeof(uint))]
        private struct Entry
        {
            internal void* Item;

            /// <summary>Odd for a live handle. Else twice the index of the next free entry plus one.</summary>
            internal uint Generation;

            internal readonly bool IsLive => (Generation & 1) != 0;

            internal int NextFree
            {
                readonly get => (int)(Generation >> 1) - 1;
                set => Generation = (uint)(value + 1) << 1;
            }
        }
    }
}
