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
        private Head* head;
        private readonly MemorySource source;
#if !BLOCKYARD_RELEASE
        private Safety safety;
#endif

        /// <summary>Creates an empty map.</summary>
        /// <param name="capacity">The number of entries it holds before it grows.</param>
        /// <param name="source">Where its memory comes from.</param>
        /// <exception cref="OutOfMemoryException">There is not enough memory.</exception>
        public UnmanagedHashMap(int capacity, MemorySource source)
        {
            Bounds.CheckCount(capacity, nameof(capacity));
            this.source = source;
            head = (Head*)source.Allocate(sizeof(Head), sizeof(void*));
            *head = default;
#if !BLOCKYARD_RELEASE
            safety = default;
#endif
            try
            {
                if (capacity > 0)
                {
                    Rehash(SlotsFor(capacity));
                }
            }
            catch
            {
                source.Free(head);
                throw;
            }
#if !BLOCKYARD_RELEASE
            safety = new Safety(source);
#endif
        }

        /// <summary>Whether it has memory: it was created, and this copy was not disposed.</summary>
        public readonly bool IsCreated => head != null;

        /// <summary>The number of entries.</summary>
        public readonly int Count
        {
            get
            {
                CheckLife();
                return head->Count;
            }
        }

        /// <summary>The number of entries it holds before it grows.</summary>
        public readonly int Capacity
        {
            get
            {
                CheckLife();
                return RoomIn(head->Slots);
            }
        }

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
            int slot = Find(key);
            value = slot < 0 ? default : head->Entries[slot].Value;
            return slot >= 0;
        }

        /// <summary>Whether a key is in the map.</summary>
        /// <param name="key">The key.</param>
        public readonly bool ContainsKey(TKey key) => Find(key) >= 0;

        /// <summary>Returns a reference to a key's value, valid until the map changes. Adds the key if the map does not
        /// have it.</summary>
        /// <param name="key">The key.</param>
        /// <param name="added">Whether the key was added. Its value is the default then.</param>
        /// <inheritdoc cref="TryAdd" path="/exception"/>
        public readonly ref TValue GetOrAdd(TKey key, out bool added)
        {
            int found = Find(key);
            added = found < 0;
            if (found >= 0)
            {
                return ref head->Entries[found].Value;
            }

            if (head->Count >= RoomIn(head->Slots))
            {
                Rehash(Math.Max(8, checked(head->Slots * 2)));
            }

            uint hash = Hash(key);
            int slot = Place(hash);
            head->Entries[slot] = new Entry { Hash = hash, Key = key };
            head->Count++;
            return ref head->Entries[slot].Value;
        }

        /// <summary>Removes a key.</summary>
        /// <param name="key">The key.</param>
        /// <returns>False when the map does not have it.</returns>
        public readonly bool Remove(TKey key)
        {
            int hole = Find(key);
            if (hole < 0)
            {
                return false;
            }

            // Entries after the hole move back into it, unless that would put them before their home slot.
            int mask = head->Slots - 1;
            Entry* entries = head->Entries;
            for (int next = (hole + 1) & mask; entries[next].Hash != 0; next = (next + 1) & mask)
            {
                int home = (int)(entries[next].Hash >> head->Shift);
                if (((next - home) & mask) >= ((next - hole) & mask))
                {
                    entries[hole] = entries[next];
                    hole = next;
                }
            }

            entries[hole].Hash = 0;
            head->Count--;
            return true;
        }

        /// <summary>Removes all entries. Keeps the memory. O(capacity).</summary>
        public readonly void Clear()
        {
            CheckLife();
            if (head->Slots > 0)
            {
                RawMemory.Clear(head->Entries, (long)head->Slots * sizeof(Entry));
            }

            head->Count = 0;
        }

        /// <summary>Makes room for a number of entries.</summary>
        /// <param name="capacity">The total number of entries.</param>
        /// <inheritdoc cref="TryAdd" path="/exception"/>
        public readonly void EnsureCapacity(int capacity)
        {
            CheckLife();
            if (capacity > RoomIn(head->Slots))
            {
                Rehash(SlotsFor(capacity));
            }
        }

        /// <summary>Enumerates the entries. The map must not change meanwhile.</summary>
        public readonly Enumerator GetEnumerator()
        {
            CheckLife();
            return new Enumerator(head);
        }

        /// <summary>Frees the memory. A second call on the same variable does nothing; on a copy it throws in checked
        /// builds.</summary>
        public void Dispose()
        {
            if (head != null)
            {
#if !BLOCKYARD_RELEASE
                safety.End();
                safety = default;
#endif
                source.Free(head->Entries);
                source.Free(head);
                head = null;
            }
        }

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

        private readonly int Find(TKey key)
        {
            CheckLife();
            int mask = head->Slots - 1;
            if (mask < 0)
            {
                return -1;
            }

            uint hash = Hash(key);
            Entry* entries = head->Entries;
            for (int slot = (int)(hash >> head->Shift); ; slot = (slot + 1) & mask)
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
        private readonly int Place(uint hash)
        {
            int slot = (int)(hash >> head->Shift);
            while (head->Entries[slot].Hash != 0)
            {
                slot = (slot + 1) & (head->Slots - 1);
            }

            return slot;
        }

        private readonly void Rehash(int slots)
        {
            long bytes = (long)slots * sizeof(Entry);
            Entry* old = head->Entries;
            int oldSlots = head->Slots;
            Entry* fresh = (Entry*)source.Allocate(bytes, RawMemory.AlignmentOf<Entry>());
            RawMemory.Clear(fresh, bytes);
            head->Entries = fresh;
            head->Slots = slots;
            head->Shift = 32;
            for (int left = slots; left > 1; left >>= 1)
            {
                head->Shift--;
            }

            for (int i = 0; i < oldSlots; i++)
            {
                if (old[i].Hash != 0)
                {
                    fresh[Place(old[i].Hash)] = old[i];
                }
            }

            source.Free(old);
        }

        private readonly void CheckLife()
        {
#if !BLOCKYARD_RELEASE
            safety.Check();
#endif
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
