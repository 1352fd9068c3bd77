using System;
using System.Net.Sockets;
using System.Threading;

namespace Blockyard.Sockets
{
    /// <summary>The base of the back ends. <see cref="UdpSocket"/> keeps the socket open during calls.</summary>
    internal abstract class UdpTransport
    {
        /// <summary>Longer than any UDP datagram.</summary>
        internal const int LongestDatagram = 65536;

        /// <summary>An error that came behind the datagrams of a batch.</summary>
        private SocketException? postponed;

        /// <summary>Never blocks. False when there is nothing to read.</summary>
        internal abstract bool TryReceive(Span<byte> buffer, out Received received);

        /// <summary>Never blocks. False when the system has no room.</summary>
        internal abstract bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to);

        /// <summary>Waits until there is something to read, at most for this time (-1: without limit).</summary>
        /// <returns>Whether there may be something to read.</returns>
        internal abstract bool Wait(int milliseconds);

        /// <summary>Wakes waiting threads, before the socket closes.</summary>
        internal abstract void Wake();

        internal virtual int ReceiveBatch(DatagramBatch batch)
        {
            ThrowPostponed();
            int count = 0;
            try
            {
                while (count < batch.Capacity && TryReceive(batch.Room(count), out Received received))
                {
                    batch.Set(count++, received);
                }
            }
            catch (SocketException error) when (count > 0)
            {
                // Neither the datagrams before it nor the error, which may occur only once, must be lost.
                postponed = error;
            }

            return count;
        }

        internal virtual int SendBatch(DatagramBatch batch, int first)
        {
            int sent = first;
            try
            {
                while (sent < batch.Count && TrySend(batch[sent], batch.AddressOf(sent)))
                {
                    sent++;
                }
            }
            catch (SocketException) when (sent > first)
            {
                // The next call begins at this datagram and throws.
            }

            return sent - first;
        }

        /// <summary>Called at the start of a receive.</summary>
        private protected void ThrowPostponed()
        {
            if (postponed != null && Interlocked.Exchange(ref postponed, null) is SocketException error)
            {
                throw error;
            }
        }

        /// <summary>Whether an error only reports that a host refused an earlier datagram.</summary>
        private protected static bool IsEarlierRefusal(SocketError error) =>
            error == SocketError.ConnectionReset || error == SocketError.ConnectionRefused;
    }
}
