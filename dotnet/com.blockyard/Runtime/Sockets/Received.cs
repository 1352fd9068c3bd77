using System.Runtime.CompilerServices;

namespace Blockyard.Sockets
{
    /// <summary>The length and the sender of a received datagram.</summary>
    public readonly struct Received
    {
        private const ulong TruncatedBit = 1UL << 32;

        private readonly SocketAddr from;

        /// <summary>The length, and whether the datagram was truncated. One word: a copy reads it as one, and a
        /// processor stalls when it was just written as two.</summary>
        private readonly ulong lengthAndTruncated;

        internal Received(in SocketAddr from, int length, bool isTruncated)
        {
            this.from = from;
            lengthAndTruncated = Pack(length, isTruncated);
        }

        /// <summary>The sender.</summary>
        public SocketAddr From => from;

        /// <summary>The number of bytes stored; 0 for an empty datagram.</summary>
        public int Length => (int)(uint)lengthAndTruncated;

        /// <summary>Whether the datagram was longer than the buffer. The rest is lost.</summary>
        public bool IsTruncated => (lengthAndTruncated & TruncatedBit) != 0;

        /// <summary>Writes the result in place, because Mono copies a struct at every call that returns it.</summary>
        /// <returns>False when the sender's address is not an IP address. The sender is none then.</returns>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static unsafe bool TryWrite(
            Received* to, byte* sender, uint senderLength, int length, bool isTruncated)
        {
            Words* words = (Words*)to;
            words->LengthAndTruncated = Pack(length, isTruncated);
            return LinuxSockaddr.TryRead(sender, senderLength, &words->From);
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private static ulong Pack(int length, bool isTruncated) => (uint)length | (isTruncated ? TruncatedBit : 0);

        /// <summary>The same fields, for writing through a pointer.</summary>
        private struct Words
        {
            internal SocketAddr From;
            internal ulong LengthAndTruncated;
        }
    }
}
