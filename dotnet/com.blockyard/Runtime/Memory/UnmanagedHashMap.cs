using System;
using System.Collections.Generic;

namespace Blockyard.Memory
{
    /// <summary>A hash map in unmanaged memory.</summary>
    /// <remarks>
    /// A small struct whose copies share the map; dispose only one of them. It uses open addressing with linear probing
    /// and removal by shifting back (Knuth, The Art of Computer Programming 6.4, algorithm R), and is at most three
    /// quarters full. Adding, finding and removing are expected O(1); adding is amortised. The order of enumeration is
    /// undefined. The map mixes the result of a key's <c>GetHashCode</c>, so a simple one is enough. The same checks as
    /// <see cref="UnmanagedList{T}"/>. One thread at a time, or any number of readers.
    /// </remarks>
    /// <typeparam name="TKey">The type of the keys.</typeparam>
    /// <typeparam name="TValue">The type of the values.</typeparam>
    public unsafe struct UnmanagedHashMap<TKey, TValue> : IDisposable
        where TKey : unmanaged, IEquatable<TKey>
        where TValue : unmanaged
    {
        private ContainerMemory memory;

        /// <summary>Creates an empty map.</summary>
        /// <param name="capacity">The number of entries it holds before it grows.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedHashMap(int capacity, MemorySource source)
        {
            Bounds.CheckCount(capacity, nameof(capacity));
            memory = default;
            memory.Create<Head>(source);
            try
            {
                EnsureCapacity(capacity);
            }
            catch
            {
                memory.End();
                throw;
            }
        }

        /// <summary>Whether it has memory: it was created, and this copy was not disposed.</summary>
        public readonly bool IsCreated => memory.IsCreated;

        /// <summary>The number of entries.</summary>
        public readonly int Count => Shared->Count;

        /// <summary>The number of entries it holds before it grows.</summary>
        public readonly int Capacity => RoomIn(Shared->Slots);

        /// <summary>The value of a key. Setting it adds the key or replaces its value.</summary>
        /// <param name="key">The key.</param>
        /// <exception cref="KeyNotFoundException">The key that is read is not in the
        /// map.</exception>
        public readonly TValue this[TKey key]
        {
            get => TryGetValue(key, out TValue value)
                ? value
                : throw new KeyNotFoundException("The key is not in the map.");
            set => GetOrAdd(key, out _) = value;
        }

        /// <summary>Adds a key if the map does not have it.</summary>
        /// <param name="key">The key.</param>
        /// <param name="value">Its value.</param>
        /// <returns>False when the map has the key. The map is unchanged then.</returns>
        /// <exception cref="OutOfMemoryException">There is no memory to grow. The map is unchanged.</exception>
        public readonly bool TryAdd(TKey key, TValue value)
        {
            ref TValue at = ref GetOrAdd(key, out bool added);
            if (added)
            {
                at = value;
            }

            return added;
        }

        /// <summary>Looks up a key.</summary>
        /// <param name="key">The key.</param>
        /// <param name="value">Its value; the default when the result is false.</param>
        public readonly bool TryGetValue(TKey key, out TValue value)
        {
            Head* shared = Shared;
            int slot = Find(shared, key);
            value = slot < 0 ? default : shared->Entries[slot].Value;
            return slot >= 0;
        }

        /// <summary>Whether a key is in the map.</summary>
        /// <param name="key">The key.</param>
        public readonly bool ContainsKey(TKey key) => Find(Shared, key) >= 0;

        /// <summary>Returns a reference to a key's value, valid until the map changes. Adds the key if the map does not
        /// have it.</summary>
        /// <param name="key">The key.</param>
        /// <param name="added">Whether the key was added. Its value is the default then.</param>
        /// <inheritdoc cref="TryAdd" path="/exception"/>
        public readonly ref TValue GetOrAdd(TKey key, out bool added)
        {
            Head* shared = Shared;
            int found = Find(shared, key);
            added = found < 0;
            if (found >= 0)
            {
                return ref shared->Entries[found].Value;
            }

            if (shared->Count >= RoomIn(shared->Slots))
            {
                Rehash(Math.Max(8, checked(shared->Slots * 2)));
            }

            uint hash = Hash(key);
            int slot = Place(shared, hash);
            shared->Entries[slot] = new Entry { Hash = hash, Key = key };
            shared->Count++;
            return ref shared->Entries[slot].Value;
        }

        /// <summary>Removes a key.</summary>
        /// <param name="key">The key.</param>
        /// <returns>False when the map does not have it.</returns>
        public readonly bool Remove(TKey key)
        {
            Head* shared = Shared;
            int hole = Find(shared, key);
            if (hole < 0)
            {
                return false;
            }

            // Entries after the hole move back into it, unless that would put them before their home slot.
            int mask = shared->Slots - 1;
            Entry* entries = shared->Entries;
            for (int next = (hole + 1) & mask; entries[next].Hash != 0; next = (next + 1) & mask)
            {
                int home = (int)(entries[next].Hash >> shared->Shift);
                if (((next - home) & mask) >= ((next - hole) & mask))
                {
                    entries[hole] = entries[next];
                    hole = next;
                }
            }

            entries[hole].Hash = 0;
            shared->Count--;
            return true;
        }

        /// <summary>Removes all entries. Keeps the memory. O(capacity).</summary>
        public readonly void Clear()
        {
            Head* shared = Shared;
            if (shared->Slots > 0)
            {
                RawMemory.Clear(shared->Entries, (long)shared->Slots * sizeof(Entry));
            }

            shared->Count = 0;
        }

        /// <summary>Makes room for a number of entries.</summary>
        /// <param name="capacity">The total number of entries.</param>
        /// <inheritdoc cref="TryAdd" path="/exception"/>
        public readonly void EnsureCapacity(int capacity)
        {
            if (capacity > RoomIn(Shared->Slots))
            {
                Rehash(SlotsFor(capacity));
            }
        }

        /// <summary>Enumerates the entries. The map must not change meanwhile.</summary>
        public readonly Enumerator GetEnumerator() => new Enumerator(Shared);

        /// <summary>Frees the memory. A second call on the same variable does nothing; with checks it throws on a
        /// copy.</summary>
        public void Dispose()
        {
            if (memory.IsCreated)
            {
                memory.Free(Shared->Entries);
                memory.End();
            }
        }

        private readonly Head* Shared => (Head*)memory.Block;

        private static int RoomIn(int slots) => slots - (slots >> 2);

        private static int SlotsFor(int entries)
        {
            int slots = 8;
            while (RoomIn(slots) < entries)
            {
                slots = checked(slots * 2);
            }

            return slots;
        }

        /// <summary>Mixes a key's hash by a multiplication with the golden ratio: the top bits are the home slot. Never
        /// 0, which marks an empty slot.</summary>
        private static uint Hash(TKey key)
        {
            uint hash = unchecked((uint)key.GetHashCode());
            hash = unchecked((hash ^ (hash >> 15)) * 0x9E3779B1u);
            return hash == 0 ? 1 : hash;
        }

        private static int Find(Head* shared, TKey key)
        {
            int mask = shared->Slots - 1;
            if (mask < 0)
            {
                return -1;
            }

            uint hash = Hash(key);
            Entry* entries = shared->Entries;
            for (int slot = (int)(hash >> shared->Shift); ; slot = (slot + 1) & mask)
            {
                if (entries[slot].Hash == 0)
                {
                    return -1;
                }

                if (entries[slot].Hash == hash && entries[slot].Key.Equals(key))
                {
                    return slot;
                }
            }
        }

        /// <summary>The first empty slot from a hash's home slot on. There always is one.</summary>
        private static int Place(Head* shared, uint hash)
        {
            int slot = (int)(hash >> shared->Shift);
            while (shared->Entries[slot].Hash != 0)
            {
                slot = (slot + 1) & (shared->Slots - 1);
            }

            return slot;
        }

        private readonly void Rehash(int slots)
        {
            Head* shared = Shared;
            Entry* old = shared->Entries;
            int oldSlots = shared->Slots;
            Entry* fresh = memory.Allocate<Entry>(slots);
            RawMemory.Clear(fresh, (long)slots * sizeof(Entry));
            shared->Entries = fresh;
            shared->Slots = slots;
            shared->Shift = 32;
            for (int left = slots; left > 1; left >>= 1)
            {
                shared->Shift--;
            }

            for (int i = 0; i < oldSlots; i++)
            {
                if (old[i].Hash != 0)
                {
                    fresh[Place(shared, old[i].Hash)] = old[i];
                }
            }

            memory.Free(old);
        }

        /// <summary>Enumerates the entries.</summary>
        public struct Enumerator
        {
            private readonly Head* head;
            private int slot;

            internal Enumerator(Head* head)
            {
                this.head = head;
                slot = -1;
            }

            /// <summary>The current entry.</summary>
            public readonly KeyValuePair<TKey, TValue> Current =>
                new KeyValuePair<TKey, TValue>(head->Entries[slot].Key, head->Entries[slot].Value);

            /// <summary>Moves to the next entry.</summary>
            /// <returns>False after the last.</returns>
            public bool MoveNext()
            {
                while (++slot < head->Slots)
                {
                    if (head->Entries[slot].Hash != 0)
                    {
                        return true;
                    }
                }

                return false;
            }
        }

        internal struct Head
        {
            internal Entry* Entries;
            internal int Slots;
            internal int Count;
            internal int Shift;
        }

        internal struct Entry
        {
            internal uint Hash;
            internal TKey Key;
            internal TValue Value;
        }
    }
}
