using System;
using System.Collections.Generic;

namespace Blockyard.Sockets
{
    /// <summary>Maps a peer's address to what a server keeps about it. Looking up allocates nothing.</summary>
    /// <remarks>
    /// The key is the whole address, never just its hash, so no two peers share an entry. It uses open addressing with
    /// linear probing and is at most three quarters full. Every operation is expected O(1), and adding allocates only
    /// to grow. One thread at a time, or any number of readers.
    /// </remarks>
    /// <typeparam name="T">The type of the values: a class, a struct or a handle.</typeparam>
    public sealed class ClientTable<T>
    {
        private Entry[] entries;
        private int count;
        private int changes;

        /// <summary>Creates an empty table.</summary>
        /// <param name="capacity">The number of clients it holds before it grows.</param>
        public ClientTable(int capacity = 1024)
        {
            if (capacity < 0 || capacity > 1 << 28)
            {
                throw new ArgumentOutOfRangeException(
                    nameof(capacity), capacity, "A table's capacity is 0 to 2^28 clients.");
            }

            int slots = 16;
            while (slots - (slots >> 2) < capacity)
            {
                slots *= 2;
            }

            entries = new Entry[slots];
        }

        /// <summary>The number of clients.</summary>
        public int Count => count;

        /// <summary>The value of a client. Setting it adds the client or replaces its value.</summary>
        /// <param name="address">The client.</param>
        /// <exception cref="KeyNotFoundException">The client that is read is not in the table.</exception>
        public T this[in SocketAddr address]
        {
            get => TryGet(address, out T value) ? value : throw new KeyNotFoundException("No client " + address + ".");
            set
            {
                int slot = Find(address);
                if (slot < 0)
                {
                    Add(address, value);
                }
                else
                {
                    entries[slot].Value = value;
                }
            }
        }

        /// <summary>Looks up a client.</summary>
        /// <param name="address">The client.</param>
        /// <param name="value">Its value; the default when the result is false.</param>
        public bool TryGet(in SocketAddr address, out T value)
        {
            int slot = Find(address);
            value = slot < 0 ? default! : entries[slot].Value;
            return slot >= 0;
        }

        /// <summary>Adds a client if the table does not have it.</summary>
        /// <param name="address">The client.</param>
        /// <param name="value">Its value.</param>
        /// <returns>False when the table has the client. The table is unchanged then.</returns>
        /// <exception cref="ArgumentException">The address is the default value.</exception>
        public bool TryAdd(in SocketAddr address, T value)
        {
            if (Find(address) >= 0)
            {
                return false;
            }

            Add(address, value);
            return true;
        }

        /// <summary>Removes a client.</summary>
        /// <param name="address">The client.</param>
        /// <returns>False when the table does not have it.</returns>
        public bool Remove(in SocketAddr address)
        {
            int hole = Find(address);
            if (hole < 0)
            {
                return false;
            }

            // Entries after the hole move back into it, unless that would put them before their home slot.
            int mask = entries.Length - 1;
            for (int next = (hole + 1) & mask; !entries[next].Address.IsNone; next = (next + 1) & mask)
            {
                int home = entries[next].Address.GetHashCode() & mask;
                if (((next - home) & mask) >= ((next - hole) & mask))
                {
                    entries[hole] = entries[next];
                    hole = next;
                }
            }

            entries[hole] = default;
            count--;
            changes++;
            return true;
        }

        /// <summary>Removes all clients. Keeps the memory.</summary>
        public void Clear()
        {
            Array.Clear(entries, 0, entries.Length);
            count = 0;
            changes++;
        }

        /// <summary>Enumerates the clients. None may be added or removed meanwhile. Allocates nothing.</summary>
        public Enumerator GetEnumerator() => new Enumerator(this);

        private int Find(in SocketAddr address)
        {
            if (address.IsNone)
            {
                return -1;
            }

            Entry[] all = entries;
            int mask = all.Length - 1;
            for (int slot = address.GetHashCode() & mask; ; slot = (slot + 1) & mask)
            {
                if (all[slot].Address.IsNone)
                {
                    return -1;
                }

                if (all[slot].Address.Equals(address))
                {
                    return slot;
                }
            }
        }

        private void Add(in SocketAddr address, T value)
        {
            if (address.IsNone)
            {
                throw new ArgumentException("The default SocketAddr is no address.", nameof(address));
            }

            if (count >= entries.Length - (entries.Length >> 2))
            {
                Entry[] old = entries;
                entries = new Entry[checked(old.Length * 2)];
                for (int i = 0; i < old.Length; i++)
                {
                    if (!old[i].Address.IsNone)
                    {
                        Place(old[i]);
                    }
                }
            }

            Place(new Entry { Address = address, Value = value });
            count++;
            changes++;
        }

        private void Place(in Entry entry)
        {
            int mask = entries.Length - 1;
            int slot = entry.Address.GetHashCode() & mask;
            while (!entries[slot].Address.IsNone)
            {
                slot = (slot + 1) & mask;
            }

            entries[slot] = entry;
        }

        /// <summary>Enumerates the clients.</summary>
        public struct Enumerator
        {
            private readonly ClientTable<T> table;
            private readonly Entry[] entries;
            private readonly int changes;
            private int slot;

            internal Enumerator(ClientTable<T> table)
            {
                this.table = table;
                entries = table.entries;
                changes = table.changes;
                slot = -1;
            }

            /// <summary>The current client.</summary>
            public readonly KeyValuePair<SocketAddr, T> Current =>
                new KeyValuePair<SocketAddr, T>(entries[slot].Address, entries[slot].Value);

            /// <summary>Moves to the next client.</summary>
            /// <returns>False after the last.</returns>
            /// <exception cref="InvalidOperationException">A client was added or removed.</exception>
            public bool MoveNext()
            {
                if (table.changes != changes)
                {
                    throw new InvalidOperationException("The table was changed while it was enumerated.");
                }

                while (++slot < entries.Length)
                {
                    if (!entries[slot].Address.IsNone)
                    {
                        return true;
                    }
                }

                return false;
            }
        }

        internal struct Entry
        {
            internal SocketAddr Address;
            internal T Value;
        }
    }
}
