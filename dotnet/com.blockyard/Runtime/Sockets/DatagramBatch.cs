using System;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>A batch of datagrams that are received or sent together, in one block of unmanaged memory.</summary>
    /// <remarks>
    /// The constructor allocates all memory. One thread at a time. The finalizer frees a batch that was not disposed. A
    /// span of a datagram does not keep the batch alive.
    /// </remarks>
    public unsafe class DatagramBatch : IDisposable
    {
        /// <summary>The most datagrams that the kernel cuts one message into (the first value of
        /// UDP_MAX_SEGMENTS).</summary>
        private const int MostSegments = 64;

        /// <summary>The most bytes of a message before it is cut: the longest datagram minus the IPv6 header.</summary>
        private const int LongestMessage = 65487;

        private const int CacheLine = 64;

        private readonly byte* block;
        private readonly LinuxNative.BatchMessage* messages;
        private readonly LinuxNative.Part* parts;
        private readonly LinuxNative.SegmentControl* controls;
        private readonly Entry* entries;
        private readonly bool ownsPayload;
        private int count;
        private bool disposed;

        /// <summary>Whether every message is ready for a receive.</summary>
        private bool isPreparedToReceive;

        /// <summary>Creates an empty batch.</summary>
        /// <param name="capacity">The number of datagrams, 1 to 1024 (the kernel's limit).</param>
        /// <param name="datagramSize">The most bytes of each datagram. Longer ones are truncated.</param>
        public DatagramBatch(int capacity = 64, int datagramSize = 1500)
            : this(capacity, datagramSize, ownsPayload: true)
        {
        }

        private protected DatagramBatch(int capacity, int datagramSize, bool ownsPayload)
        {
            if (capacity < 1 || capacity > 1024)
            {
                GC.SuppressFinalize(this);
                throw new ArgumentOutOfRangeException(nameof(capacity), capacity, "A batch has 1 to 1024 datagrams.");
            }

            if (datagramSize < 1 || datagramSize > UdpTransport.LongestDatagram)
            {
                GC.SuppressFinalize(this);
                throw new ArgumentOutOfRangeException(
                    nameof(datagramSize),
                    datagramSize,
                    "A datagram has 1 to " + UdpTransport.LongestDatagram + " bytes.");
            }

            this.ownsPayload = ownsPayload;
            Capacity = capacity;
            DatagramSize = datagramSize;
            int stride = ownsPayload ? Stride(datagramSize) : 0;
            int tables = sizeof(Entry) + sizeof(LinuxNative.BatchMessage) + sizeof(LinuxNative.Part)
                + sizeof(LinuxNative.SegmentControl) + LinuxSockaddr.Room;
            block = (byte*)Marshal.AllocHGlobal(new IntPtr(((long)capacity * (tables + stride)) + (2 * CacheLine)));

            // A message fills exactly one cache line. The sizes of all these types are multiples of 8 bytes, so each
            // table is aligned.
            messages = (LinuxNative.BatchMessage*)AtCacheLine(block);
            byte* names = (byte*)(messages + capacity);
            parts = (LinuxNative.Part*)(names + ((long)LinuxSockaddr.Room * capacity));
            entries = (Entry*)(parts + capacity);
            controls = (LinuxNative.SegmentControl*)(entries + capacity);
            byte* payload = AtCacheLine((byte*)(controls + capacity));
            for (int i = 0; i < capacity; i++)
            {
                entries[i] = new Entry { Start = ownsPayload ? payload + ((long)stride * i) : null };
                messages[i] = default;
                messages[i].Message.Name = names + (LinuxSockaddr.Room * i);
                controls[i] = new LinuxNative.SegmentControl
                {
                    // As computed by CMSG_LEN, which excludes the padding at the end.
                    Length = (UIntPtr)(uint)(sizeof(UIntPtr) + (2 * sizeof(int)) + sizeof(ushort)),
                    Level = LinuxNative.LevelUdp,
                    Type = LinuxNative.Segment,
                };
            }
        }

        /// <summary>Frees the memory.</summary>
        ~DatagramBatch()
        {
            Dispose(false);
        }

        /// <summary>The number of datagrams that it has room for.</summary>
        public int Capacity { get; }

        /// <summary>The most bytes of a datagram.</summary>
        public int DatagramSize { get; }

        /// <summary>The number of datagrams in it: those received last, or those added since
        /// <see cref="Clear"/>.</summary>
        public int Count => count;

        internal LinuxNative.BatchMessage* Messages => messages;

        /// <summary>The bytes of one datagram.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public Span<byte> this[int index]
        {
            get
            {
                Entry* entry = At(index);
                return new Span<byte>(entry->Start, entry->Length);
            }
        }

        /// <summary>The sender of a received datagram, or the address to send it to.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public SocketAddr AddressOf(int index) => At(index)->Address;

        /// <summary>Whether a datagram was longer than <see cref="DatagramSize"/>. The rest is lost.</summary>
        /// <param name="index">0 to <see cref="Count"/> - 1.</param>
        public bool IsTruncated(int index) => At(index)->Truncated;

        /// <summary>Removes all datagrams.</summary>
        public void Clear()
        {
            ThrowIfDisposed();
            count = 0;
        }

        /// <summary>Adds a copy of a datagram to send.</summary>
        /// <param name="datagram">At most <see cref="DatagramSize"/> bytes.</param>
        /// <param name="to">To whom.</param>
        /// <returns>False when the batch is full.</returns>
        public bool TryAdd(ReadOnlySpan<byte> datagram, in SocketAddr to)
        {
            if (count == Capacity && ownsPayload)
            {
                ThrowIfDisposed();
                return false;
            }

            datagram.CopyTo(Add(datagram.Length, to));
            return true;
        }

        /// <summary>Adds a datagram to send, which the caller writes in place.</summary>
        /// <param name="length">Its number of bytes, at most <see cref="DatagramSize"/>. Their values are
        /// unspecified.</param>
        /// <param name="to">To whom.</param>
        /// <returns>The memory to write it to.</returns>
        /// <exception cref="InvalidOperationException">The batch is full.</exception>
        public Span<byte> Add(int length, in SocketAddr to)
        {
            ThrowIfDisposed();
            if (!ownsPayload)
            {
                throw new InvalidOperationException("A batch of slots is for receiving.");
            }

            if (length < 0 || length > DatagramSize)
            {
                throw new ArgumentOutOfRangeException(
                    nameof(length), length, "This batch's datagrams have 0 to " + DatagramSize + " bytes.");
            }

            if (count == Capacity)
            {
                throw new InvalidOperationException("The batch is full.");
            }

            Entry* entry = entries + count;
            entry->Length = length;
            entry->Address = to;
            entry->Truncated = false;
            count++;
            return new Span<byte>(entry->Start, length);
        }

        /// <summary>Frees the memory. A second call does nothing.</summary>
        public void Dispose()
        {
            Dispose(true);
            GC.SuppressFinalize(this);
        }

        /// <summary>The memory that a datagram may be received into.</summary>
        internal Span<byte> Room(int index) => new Span<byte>(entries[index].Start, DatagramSize);

        internal void Set(int index, in Received received)
        {
            entries[index].Length = received.Length;
            entries[index].Address = received.From;
            entries[index].Truncated = received.IsTruncated;
        }

        /// <summary>Called before every receive.</summary>
        internal virtual void BeginReceive()
        {
            ThrowIfDisposed();
            count = 0;
        }

        internal virtual void EndReceive(int received) => count = received;

        internal void PrepareToReceive()
        {
            if (isPreparedToReceive)
            {
                return;
            }

            for (int i = 0; i < Capacity; i++)
            {
                parts[i].Start = entries[i].Start;
                parts[i].Length = (UIntPtr)(uint)DatagramSize;
                messages[i].Message.NameLength = LinuxSockaddr.Room;
                SetParts(i, i, 1);
            }

            isPreparedToReceive = true;
        }

        /// <summary>Reads what the kernel wrote, up to the first message without an address, which indicates a
        /// shutdown.</summary>
        /// <remarks>
        /// Writes addresses in place, because Mono copies a struct at every call that returns it. Also resets the
        /// message for the next receive, while it is in the cache. The kernel does not read the flags that it writes.
        /// </remarks>
        internal int TakeReceived(int received)
        {
            LinuxNative.BatchMessage* message = messages;
            Entry* entry = entries;
            uint longest = (uint)DatagramSize;
            for (int i = 0; i < received; i++, message++, entry++)
            {
                if (!LinuxSockaddr.TryRead(message->Message.Name, message->Message.NameLength, &entry->Address))
                {
                    isPreparedToReceive = false;
                    return i;
                }

                message->Message.NameLength = LinuxSockaddr.Room;
                uint length = message->Length;
                entry->Length = (int)(length > longest ? longest : length);
                entry->Truncated = (message->Message.Flags & LinuxNative.Truncated) != 0;
            }

            return received;
        }

        /// <summary>Makes messages of the datagrams from <paramref name="first"/> on: one for each datagram or each run
        /// of datagrams.</summary>
        /// <param name="first">The first datagram to send.</param>
        /// <param name="socketIsIPv6">Whether to write addresses as IPv6.</param>
        /// <param name="longestSegment">The length of the longest datagrams that may share a message; 0 for
        /// none.</param>
        /// <returns>The number of messages; -1 when such a socket cannot send to one of the addresses.</returns>
        internal int PrepareToSend(int first, bool socketIsIPv6, int longestSegment)
        {
            isPreparedToReceive = false;
            int message = 0;
            for (int i = first; i < count; message++)
            {
                byte* name = messages[message].Message.Name;
                uint length = LinuxSockaddr.Write(entries[i].Address, name, socketIsIPv6);
                if (length == 0 || (!socketIsIPv6 && *(ushort*)name != LinuxNative.FamilyIPv4))
                {
                    return -1;
                }

                messages[message].Message.NameLength = length;
                int end = i + 1;
                if (end < count && IsSameAddress(i, end) && entries[i].Length <= longestSegment)
                {
                    end = EndOfRun(i);
                }

                SetParts(message, i, end - i);
                for (; i < end; i++)
                {
                    parts[i].Start = entries[i].Start;
                    parts[i].Length = (UIntPtr)(uint)entries[i].Length;
                }
            }

            return message;
        }

        internal void ThrowIfDisposed()
        {
            if (disposed)
            {
                throw new ObjectDisposedException(nameof(DatagramBatch));
            }
        }

        private protected void SetStart(int index, byte* start)
        {
            entries[index].Start = start;
            parts[index].Start = start;
        }

        private protected byte* StartAt(int index) => entries[index].Start;

        private protected byte* StartOf(int index) => At(index)->Start;

        private void SetParts(int message, int first, int datagrams)
        {
            LinuxNative.Message* header = &messages[message].Message;
            header->Parts = parts + first;
            header->PartCount = (UIntPtr)(uint)datagrams;
            header->Control = null;
            header->ControlLength = UIntPtr.Zero;
            if (datagrams > 1)
            {
                controls[message].SegmentLength = (ushort)entries[first].Length;
                header->Control = (byte*)(controls + message);
                header->ControlLength = (UIntPtr)(uint)sizeof(LinuxNative.SegmentControl);
            }
        }

        /// <summary>The end of a run: datagrams to the same address and as long as the first, and possibly a shorter
        /// last one.</summary>
        private int EndOfRun(int first)
        {
            int length = entries[first].Length;
            int total = length;
            int end = first + 1;
            while (end < count && end - first < MostSegments && length > 0 && IsSameAddress(first, end))
            {
                int next = entries[end].Length;
                if (next == 0 || next > length || total + next > LongestMessage)
                {
                    break;
                }

                total += next;
                end++;
                if (next < length)
                {
                    break;
                }
            }

            return end;
        }

        /// <summary>The distance between two datagrams: an odd number of cache lines, except for short
        /// datagrams.</summary>
        /// <remarks>With a power of two, short packets in a batch of long datagrams would share a few sets of the
        /// cache.</remarks>
        private static int Stride(int datagramSize)
        {
            int lines = (datagramSize + CacheLine - 1) / CacheLine;
            return (lines < 4 ? lines : lines | 1) * CacheLine;
        }

        private static byte* AtCacheLine(byte* address) => (byte*)(((long)address + CacheLine - 1) & ~(CacheLine - 1L));

        private bool IsSameAddress(int one, int other)
        {
            ulong* left = (ulong*)&entries[one].Address;
            ulong* right = (ulong*)&entries[other].Address;
            return left[0] == right[0] && left[1] == right[1] && left[2] == right[2] && left[3] == right[3];
        }

        private Entry* At(int index)
        {
            ThrowIfDisposed();
            if ((uint)index >= (uint)count)
            {
                throw new IndexOutOfRangeException("Datagram " + index + " of " + count + ".");
            }

            return entries + index;
        }

        private void Dispose(bool disposing)
        {
            if (!disposed)
            {
                disposed = true;
                count = 0;
                Marshal.FreeHGlobal((IntPtr)block);
            }

            _ = disposing;
        }

        private struct Entry
        {
            internal SocketAddr Address;
            internal byte* Start;
            internal int Length;
            internal bool Truncated;
        }
    }
}
