using System;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>What a back end does for a <see cref="UdpSocket"/>, which keeps the socket open meanwhile.</summary>
    internal abstract class UdpTransport
    {
        /// <summary>Longer than any UDP datagram.</summary>
        internal const int LongestDatagram = 65536;

        /// <summary>Never blocks. False when there is nothing to read.</summary>
        internal abstract bool TryReceive(Span<byte> buffer, out Received received);

        /// <summary>Never blocks. False when the system has no room.</summary>
        internal abstract bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to);

        /// <summary>Waits until there is something to read, for at most so long (-1: for ever) or a little less.</summary>
        /// <returns>Whether it is worth looking; it may be a false alarm.</returns>
        internal abstract bool Wait(int milliseconds);

        /// <summary>Wakes those who wait, before the socket closes.</summary>
        internal abstract void Wake();

        internal virtual int ReceiveBatch(DatagramBatch batch)
        {
            int count = 0;
            while (count < batch.Capacity && TryReceive(batch.Room(count), out Received received))
            {
                batch.Set(count++, received);
            }

            return count;
        }

        internal virtual int SendBatch(DatagramBatch batch, int first)
        {
            int sent = first;
            while (sent < batch.Count && TrySend(batch[sent], batch.AddressOf(sent)))
            {
                sent++;
            }

            return sent - first;
        }

        /// <summary>Whether an error only tells that an earlier datagram was refused by its host.</summary>
        private protected static bool IsOldNews(SocketError error) =>
            error == SocketError.ConnectionReset || error == SocketError.ConnectionRefused;
    }
}
