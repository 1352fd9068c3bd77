using System;
using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>Receives and sends with a reused end point, on any <see cref="Socket"/>.</summary>
    /// <remarks>
    /// Errors are the socket's <see cref="SocketException"/>s. The exception for "would block" costs 500 to 2,700
    /// bytes, so poll first, or use <see cref="UdpSocket"/>.
    /// </remarks>
    public static class SocketExtensions
    {
        /// <summary>Receives a datagram. Allocates at most 96 bytes (IPv6 104) on Mono, nothing on .NET 8.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">The memory for the datagram.</param>
        /// <param name="offset">Where in the buffer to store it.</param>
        /// <param name="size">The most bytes to store.</param>
        /// <param name="socketFlags">As for <see cref="Socket"/>.</param>
        /// <param name="remoteEndPoint">Becomes the sender's. Must be of the socket's family. An exception leaves
        /// it.</param>
        /// <returns>The number of bytes stored.</returns>
        public static int ReceiveFrom_NonAlloc(
            this Socket socket,
            byte[] buffer,
            int offset,
            int size,
            SocketFlags socketFlags,
            IPEndPointNonAlloc remoteEndPoint)
        {
#if NET8_0_OR_GREATER
            return socket.ReceiveFrom_NonAlloc(new Span<byte>(buffer, offset, size), socketFlags, remoteEndPoint);
        }

        /// <summary>Receives a datagram. Allocates nothing. Only on .NET 8.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">The memory for the datagram.</param>
        /// <param name="socketFlags">As for <see cref="Socket"/>.</param>
        /// <param name="remoteEndPoint">Becomes the sender's. Must be of the socket's family. An exception leaves
        /// it.</param>
        /// <returns>The number of bytes stored.</returns>
        public static int ReceiveFrom_NonAlloc(
            this Socket socket, Span<byte> buffer, SocketFlags socketFlags, IPEndPointNonAlloc remoteEndPoint)
        {
            EndPoint received = remoteEndPoint;
            try
            {
                if (socket.AddressFamily != remoteEndPoint.AddressFamily)
                {
                    return socket.ReceiveFrom(buffer, socketFlags, ref received);
                }

                // Each receive stores the length of the sender's address, which may be too short for the next.
                SocketAddress address = remoteEndPoint.Serialize();
                address.Size = SocketAddress.GetMaximumAddressSize(socket.AddressFamily);
                return socket.ReceiveFrom(buffer, socketFlags, address);
            }
            finally
            {
                remoteEndPoint.Refresh(received);
            }
#else
            EndPoint received =
                socket.AddressFamily == remoteEndPoint.AddressFamily ? remoteEndPoint.AsReceiver : remoteEndPoint;
            try
            {
                return socket.ReceiveFrom(buffer, offset, size, socketFlags, ref received);
            }
            finally
            {
                remoteEndPoint.Refresh(received);
            }
#endif
        }

        /// <summary>Receives a datagram into a whole buffer.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">The memory for the datagram.</param>
        /// <param name="remoteEndPoint">Becomes the sender's. Must be of the socket's family. An exception leaves
        /// it.</param>
        /// <returns>The number of bytes stored.</returns>
        public static int ReceiveFrom_NonAlloc(this Socket socket, byte[] buffer, IPEndPointNonAlloc remoteEndPoint) =>
            socket.ReceiveFrom_NonAlloc(buffer, 0, buffer.Length, SocketFlags.None, remoteEndPoint);

        /// <summary>Sends a datagram. Allocates nothing.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">The memory with the datagram.</param>
        /// <param name="offset">Where in the buffer it starts.</param>
        /// <param name="size">Its number of bytes.</param>
        /// <param name="socketFlags">As for <see cref="Socket"/>.</param>
        /// <param name="remoteEndPoint">The address to send to.</param>
        /// <returns>The number of bytes sent.</returns>
        public static int SendTo_NonAlloc(
            this Socket socket,
            byte[] buffer,
            int offset,
            int size,
            SocketFlags socketFlags,
            IPEndPointNonAlloc remoteEndPoint)
        {
#if NET8_0_OR_GREATER
            return socket.SendTo_NonAlloc(new ReadOnlySpan<byte>(buffer, offset, size), socketFlags, remoteEndPoint);
        }

        /// <summary>Sends a datagram. Allocates nothing. Only on .NET 8.</summary>
        /// <param name="socket">The socket.</param>
        /// <param name="buffer">The datagram.</param>
        /// <param name="socketFlags">As for <see cref="Socket"/>.</param>
        /// <param name="remoteEndPoint">The address to send to.</param>
        /// <returns>The number of bytes sent.</returns>
        public static int SendTo_NonAlloc(
            this Socket socket, ReadOnlySpan<byte> buffer, SocketFlags socketFlags, IPEndPointNonAlloc remoteEndPoint)
        {
            // An IPv4 target of a dual-mode socket must be mapped. The runtime does that only for end points.
            return socket.AddressFamily == remoteEndPoint.AddressFamily
                ? socket.SendTo(buffer, socketFlags, remoteEndPoint.Serialize())
                : socket.SendTo(buffer, socketFlags, remoteEndPoint.Addr.ToIPEndPoint());
#else
            EndPoint target = socket.AddressFamily == remoteEndPoint.AddressFamily
                ? remoteEndPoint.AsTarget
                : remoteEndPoint.Addr.ToIPEndPoint();
            return socket.SendTo(buffer, offset, size, socketFlags, target);
#endif
        }
    }
}
