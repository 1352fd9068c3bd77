using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>A <see cref="SocketAddress"/> of the runtime that is overwritten for every datagram sent.</summary>
    internal sealed class SendAddress
    {
        private readonly IPEndPointNonAlloc endPoint;
        private readonly SocketAddress bytes;

        internal SendAddress(IPEndPointNonAlloc endPoint)
        {
            this.endPoint = endPoint;
            bytes = endPoint.Serialize();
        }

        internal SocketAddress Bytes => bytes;

        /// <summary>Sets the end point to another address of the same family and returns it. Allocates
        /// nothing.</summary>
        internal unsafe IPEndPointNonAlloc For(in SocketAddr to)
        {
            bytes[2] = (byte)(to.Port >> 8);
            bytes[3] = (byte)to.Port;
            ulong high = to.High;
            if (to.Family == AddressFamily.InterNetwork)
            {
                Write(4, (byte*)&high, 4);
            }
            else
            {
                ulong low = to.Low;
                uint scope = to.ScopeId;
                Write(8, (byte*)&high, 8);
                Write(16, (byte*)&low, 8);
                Write(24, (byte*)&scope, 4);
            }

            return endPoint;
        }

        private unsafe void Write(int at, byte* from, int count)
        {
            for (int i = 0; i < count; i++)
            {
                bytes[at + i] = from[i];
            }
        }
    }
}
