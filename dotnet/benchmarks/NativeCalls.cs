using System;
using System.Net;
using System.Runtime.InteropServices;
using Blockyard.Sockets;

namespace Blockyard.Benchmarks
{
    /// <summary>Loops in C of the same system calls on the same sockets: native/calls.c, if it was built.</summary>
    internal static class NativeCalls
    {
        private const string Library = "calls";

        /// <summary>Passes the addresses of the clients. Returns false when the library is not next to this
        /// program.</summary>
        internal static bool TryAdd(SocketAddr[] clients)
        {
            try
            {
                foreach (SocketAddr client in clients)
                {
                    IPEndPoint endPoint = client.ToIPEndPoint();
                    byte[] address = endPoint.Address.GetAddressBytes();
                    Check(calls_add_client(address, address.Length, endPoint.Port));
                }

                return true;
            }
            catch (DllNotFoundException)
            {
                return false;
            }
        }

        internal static void ReceiveEach(IntPtr socket, int count) => Check(calls_receive_each((int)socket, count));

        internal static void ReceiveBatch(IntPtr socket, int count) => Check(calls_receive_batch((int)socket, count));

        internal static void SendEach(IntPtr socket, int each) => Check(calls_send_each((int)socket, each));

        internal static void SendBatch(IntPtr socket, int each) => Check(calls_send_batch((int)socket, each));

        private static void Check(int answer)
        {
            if (answer != 0)
            {
                throw new InvalidOperationException("C's own calls failed (" + answer + "): the measurement is void.");
            }
        }

        [DllImport(Library)]
        private static extern int calls_add_client(byte[] address, int bytes, int port);

        [DllImport(Library)]
        private static extern int calls_receive_each(int descriptor, int count);

        [DllImport(Library)]
        private static extern int calls_receive_batch(int descriptor, int count);

        [DllImport(Library)]
        private static extern int calls_send_each(int descriptor, int each);

        [DllImport(Library)]
        private static extern int calls_send_batch(int descriptor, int each);
    }
}
