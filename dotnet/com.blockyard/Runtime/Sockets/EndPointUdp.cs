using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>UDP with two <see cref="IPEndPointNonAlloc"/>: one for receiving, one for sending.</summary>
    internal sealed class EndPointUdp : ManagedUdp
    {
        private readonly IPEndPointNonAlloc sender;
        private readonly SendAddress target;

        internal EndPointUdp(Socket socket)
            : base(socket)
        {
            sender = new IPEndPointNonAlloc(Any(socket), 0);
            target = new SendAddress(new IPEndPointNonAlloc(Any(socket), 0));
        }

        private protected override int Receive(byte[] buffer, out SocketAddr from)
        {
            int bytes = Socket.ReceiveFrom_NonAlloc(buffer, sender);
            from = sender.Addr;
            return bytes;
        }

        private protected override void Send(byte[] buffer, int length, in SocketAddr to) =>
            Socket.SendTo_NonAlloc(buffer, 0, length, SocketFlags.None, target.For(to));
    }
}
