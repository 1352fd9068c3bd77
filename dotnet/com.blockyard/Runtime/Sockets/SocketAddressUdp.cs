#if NET8_0_OR_GREATER
using System;
using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>UDP with .NET 8's overloads that take a <see cref="SocketAddress"/>. Allocates nothing.</summary>
    internal sealed class SocketAddressUdp : ManagedUdp
    {
        private readonly SocketAddress sender;
        private readonly SendAddress target;

        internal SocketAddressUdp(Socket socket)
            : base(socket)
        {
            sender = new SocketAddress(socket.AddressFamily);
            target = new SendAddress(new IPEndPointNonAlloc(Any(socket), 0));
        }

        private protected override int Receive(byte[] buffer, out SocketAddr from)
        {
            // Each receive stores the length of the sender's address, which may be too short for the next.
            sender.Size = SocketAddress.GetMaximumAddressSize(Socket.AddressFamily);
            int bytes = Socket.ReceiveFrom(buffer.AsSpan(), SocketFlags.None, sender);
            from = SocketAddr.From(sender);
            return bytes;
        }

        private protected override void Send(byte[] buffer, int length, in SocketAddr to)
        {
            target.For(to);
            Socket.SendTo(new ReadOnlySpan<byte>(buffer, 0, length), SocketFlags.None, target.Bytes);
        }
    }
}
#endif
