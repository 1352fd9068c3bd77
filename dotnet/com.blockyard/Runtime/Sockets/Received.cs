using System.Runtime.CompilerServices;

namespace Blockyard.Sockets
{
    /// <summary>One received datagram: how long, and from whom.</summary>
    public readonly struct Received
    {
        private const ulong TruncatedBit = 1UL << 32;

        private readonly SocketAddr from;

        /// <summary>The length, and whether it was truncated: one word, since a processor waits before it reads as one what was
        /// just written as two, as every copy would.</summary>
        private readonly ulong lengthAndTruncated;

        internal Received(in SocketAddr from, int length, bool isTruncated)
        {
            this.from = from;
            lengthAndTruncated = Pack(length, isTruncated);
        }

        /// <summary>The sender.</summary>
        public SocketAddr From => from;

        /// <summary>Bytes that were stored; 0 for an empty datagram.</summary>
        public int Length => (int)(uint)lengthAndTruncated;

        /// <summary>Whether the datagram was longer than its buffer; the rest is lost.</summary>
        public bool IsTruncated => (lengthAndTruncated & TruncatedBit) != 0;

        /// <summary>Writes one in its place, where Mono would copy it once for each call that it passes through.</summary>
        /// <returns>False, and it is from none, for a sender's address that is not IP's.</returns>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static unsafe bool TryWrite(Received* to, byte* sender, uint senderLength, int length, bool isTruncated)
        {
            Words* words = (Words*)to;
            words->LengthAndTruncated = Pack(length, isTruncated);
            return LinuxSockaddr.TryRead(sender, senderLength, &words->From);
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private static ulong Pack(int length, bool isTruncated) => (uint)length | (isTruncated ? TruncatedBit : 0);

        /// <summary>The same fields, to be written through a pointer.</summary>
        private struct Words
        {
            internal SocketAddr From;
            internal ulong LengthAndTruncated;
        }
    }
}
