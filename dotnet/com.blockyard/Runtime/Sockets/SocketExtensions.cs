using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>Receiving and sending with an end point that is used again, on any <see cref="Socket"/>.</summary>
    /// <remarks>
    /// Errors are the socket's own, as <see cref="SocketException"/>; one for "would block" costs 500 to 2,700 bytes, so poll
    /// first, or use <see cref="UdpSocket"/>.
    /// </remarks>
    public static class SocketExtensions
    {
        /// <summary>Receives a datagram. Allocates at most 96 bytes (IPv6 104) on Mono, nothing on .NET 8.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">Where the datagram goes.</param>
        /// <param name="offset">Its first byte there.</param>
        /// <param name="size">The most bytes to store.</param>
        /// <param name="socketFlags">As for <see cref="Socket"/>.</param>
        /// <param name="remoteEndPoint">Becomes the sender's; of the socket's family.</param>
        /// <returns>Bytes stored.</returns>
        public static int ReceiveFrom_NonAlloc(
            this Socket socket, byte[] buffer, int offset, int size, SocketFlags socketFlags, IPEndPointNonAlloc remoteEndPoint)
        {
#if NET8_0_OR_GREATER
            if (socket.AddressFamily == remoteEndPoint.AddressFamily)
            {
                // Each receive leaves the sender's length behind, which may be too short for the next.
                SocketAddress address = remoteEndPoint.Serialize();
                address.Size = SocketAddress.GetMaximumAddressSize(socket.AddressFamily);
                int stored = socket.ReceiveFrom(new System.Span<byte>(buffer, offset, size), socketFlags, address);
                remoteEndPoint.Refresh(remoteEndPoint);
                return stored;
            }
#endif
            EndPoint received = socket.AddressFamily == remoteEndPoint.AddressFamily ? remoteEndPoint.AsReceiver : remoteEndPoint;
            int bytes = socket.ReceiveFrom(buffer, offset, size, socketFlags, ref received);
            remoteEndPoint.Refresh(received);
            return bytes;
        }

        /// <summary>Receives a datagram into the whole of a buffer, as the long form does.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">Where the datagram goes.</param>
        /// <param name="remoteEndPoint">Becomes the sender's; of the socket's family.</param>
        /// <returns>Bytes stored.</returns>
        public static int ReceiveFrom_NonAlloc(this Socket socket, byte[] buffer, IPEndPointNonAlloc remoteEndPoint) =>
            socket.ReceiveFrom_NonAlloc(buffer, 0, buffer.Length, SocketFlags.None, remoteEndPoint);

        /// <summary>Sends a datagram. Allocates nothing.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">Where the datagram is.</param>
        /// <param name="offset">Its first byte there.</param>
        /// <param name="size">Its bytes.</param>
        /// <param name="socketFlags">As for <see cref="Socket"/>.</param>
        /// <param name="remoteEndPoint">To whom.</param>
        /// <returns>Bytes sent.</returns>
        public static int SendTo_NonAlloc(
            this Socket socket, byte[] buffer, int offset, int size, SocketFlags socketFlags, IPEndPointNonAlloc remoteEndPoint)
        {
#if NET8_0_OR_GREATER
            // An IPv4 target of a dual-mode socket must be mapped, which the runtime does for end points only.
            return socket.AddressFamily == remoteEndPoint.AddressFamily
                ? socket.SendTo(new System.ReadOnlySpan<byte>(buffer, offset, size), socketFlags, remoteEndPoint.Serialize())
                : socket.SendTo(buffer, offset, size, socketFlags, remoteEndPoint.Addr.ToIPEndPoint());
#else
            return socket.SendTo(
                buffer, offset, size, socketFlags,
                socket.AddressFamily == remoteEndPoint.AddressFamily ? remoteEndPoint.AsTarget : remoteEndPoint.Addr.ToIPEndPoint());
#endif
        }
    }
}
