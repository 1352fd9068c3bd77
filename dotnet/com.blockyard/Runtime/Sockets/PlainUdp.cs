using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>UDP with the runtime's ordinary socket calls. Allocates for every datagram.</summary>
    internal sealed class PlainUdp : ManagedUdp
    {
        private readonly EndPoint any;

        internal PlainUdp(Socket socket)
            : base(socket)
        {
            any = new IPEndPoint(Any(socket), 0);
        }

        private protected override int Receive(byte[] buffer, out SocketAddr from)
        {
            EndPoint sender = any;
            int bytes = Socket.ReceiveFrom(buffer, 0, buffer.Length, SocketFlags.None, ref sender);
            from = new SocketAddr((IPEndPoint)sender);
            return bytes;
        }

        private protected override void Send(byte[] buffer, int length, in SocketAddr to) =>
            Socket.SendTo(buffer, 0, length, SocketFlags.None, to.ToIPEndPoint());
    }
}
