// A UDP echo server that makes no garbage. It sends every datagram back to its sender and counts clients by address.
//
// Usage: EchoServer [PORT [BACK-END]]; port 0 is any free one. Ends after a minute without a datagram, or by Ctrl-C.
using System;
using System.Net;
using System.Net.Sockets;
using Blockyard.Diagnostics;
using Blockyard.Sockets;

namespace Blockyard.Examples
{
    internal static class EchoServer
    {
        private const int IdleMilliseconds = 60000;

        private static int Main(string[] args)
        {
            UdpBackend backend = UdpBackend.Automatic;
            if (args.Length > 2
                || (args.Length > 0 && !ushort.TryParse(args[0], out _))
                || (args.Length > 1 && !Enum.TryParse(args[1], ignoreCase: true, out backend)))
            {
                Console.Error.WriteLine(
                    "usage: EchoServer [PORT [" + string.Join("|", Enum.GetNames(typeof(UdpBackend))) + "]]");
                return 2;
            }

            int port = args.Length > 0 ? int.Parse(args[0]) : 7777;
            UdpSocket server;
            try
            {
                server = UdpSocket.BindDualMode(port, backend);
            }
            catch (Exception error) when (error is SocketException || error is PlatformNotSupportedException)
            {
                Console.Error.WriteLine("EchoServer: port " + port + " can't be served: " + error.Message);
                return 1;
            }

            Console.CancelKeyPress += (sender, key) =>
            {
                key.Cancel = true;
                server.Dispose();
            };
            Console.WriteLine("echoing on port " + server.LocalAddress.Port + " by " + server.Backend);
            Console.Out.Flush();

            ClientTable<int> clients = new ClientTable<int>(4096);
            using (DatagramBatch incoming = new DatagramBatch(64, 1500))
            using (DatagramBatch outgoing = new DatagramBatch(64, 1500))
            {
                long datagrams = 0;
                byte[] first = new byte[1500];
                AllocationMeasurement garbage = AllocationMeter.Measure(
                    () => datagrams = Serve(server, clients, incoming, outgoing, first));
                Console.WriteLine(
                    datagrams + " datagrams of " + clients.Count + " clients; garbage in all: " + garbage);
            }

            server.Dispose();
            return 0;
        }

        private static long Serve(
            UdpSocket server, ClientTable<int> clients, DatagramBatch incoming, DatagramBatch outgoing, byte[] first)
        {
            long datagrams = 0;
            try
            {
                while (server.Receive(first, IdleMilliseconds, out Received received))
                {
                    // Waits for one datagram, then receives all others that have arrived.
                    outgoing.Clear();
                    outgoing.TryAdd(new ReadOnlySpan<byte>(first, 0, received.Length), received.From);
                    do
                    {
                        for (int i = 0; i < outgoing.Count; i++)
                        {
                            clients.TryGet(outgoing.AddressOf(i), out int seen);
                            clients[outgoing.AddressOf(i)] = seen + 1;
                        }

                        datagrams += outgoing.Count;
                        server.SendBatch(outgoing);
                        outgoing.Clear();
                        server.ReceiveBatch(incoming);
                        for (int i = 0; i < incoming.Count; i++)
                        {
                            outgoing.TryAdd(incoming[i], incoming.AddressOf(i));
                        }
                    }
                    while (outgoing.Count > 0);
                }
            }
            catch (ObjectDisposedException)
            {
                // Ctrl-C closed the socket.
            }

            return datagrams;
        }
    }
}
