// A thousand clients of an echo server. Each sends numbered datagrams from its own socket and checks the replies.
//
// Usage: LoadClient PORT [CLIENTS [ROUNDS]]; 1000 clients and 20 rounds by default, on this machine's loopback. Exits
// with 1 when more than 1 % of the datagrams were lost, or a reply was wrong.
using System;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Blockyard.Sockets;

namespace Blockyard.Examples
{
    internal static class LoadClient
    {
        private const int PacketSize = 64;
        private const int InFlight = 50;

        private static int Main(string[] args)
        {
            int port = 0;
            int count = 1000;
            int rounds = 20;
            if (args.Length < 1 || args.Length > 3
                || !int.TryParse(args[0], out port) || port < 1 || port > 65535
                || (args.Length > 1 && (!int.TryParse(args[1], out count) || count < 1))
                || (args.Length > 2 && (!int.TryParse(args[2], out rounds) || rounds < 1)))
            {
                Console.Error.WriteLine("usage: LoadClient PORT [CLIENTS [ROUNDS]]");
                return 2;
            }

            UdpSocket[] clients = new UdpSocket[count];
            try
            {
                for (int i = 0; i < count; i++)
                {
                    clients[i] = UdpSocket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
                }
            }
            catch (SocketException error)
            {
                Console.Error.WriteLine(
                    "LoadClient: " + count + " sockets can't be opened (" + error.Message + "); raise ulimit -n");
                return 1;
            }

            Console.WriteLine(count + " clients by " + clients[0].Backend);
            int result = Run(clients, new SocketAddr(IPAddress.Loopback, port), rounds);
            foreach (UdpSocket client in clients)
            {
                client.Dispose();
            }

            return result;
        }

        private static int Run(UdpSocket[] clients, SocketAddr server, int rounds)
        {
            byte[] packet = new byte[PacketSize];
            byte[] answer = new byte[PacketSize + 1];
            double[] microseconds = new double[clients.Length * rounds];
            int answered = 0;
            int lost = 0;
            for (int round = 0; round < rounds; round++)
            {
                for (int first = 0; first < clients.Length; first += InFlight)
                {
                    int end = Math.Min(first + InFlight, clients.Length);
                    long sent = Stopwatch.GetTimestamp();
                    for (int i = first; i < end; i++)
                    {
                        Number(packet, i, round);
                        clients[i].TrySend(packet, server);
                    }

                    for (int i = first; i < end; i++)
                    {
                        if (!clients[i].Receive(answer, 1000, out Received received))
                        {
                            lost++;
                            continue;
                        }

                        Number(packet, i, round);
                        if (received.From != server
                            || !packet.AsSpan().SequenceEqual(answer.AsSpan(0, received.Length)))
                        {
                            Console.Error.WriteLine(
                                "LoadClient: client " + i + " got another datagram than it sent: "
                                + BitConverter.ToInt32(answer, 0) + " of round " + BitConverter.ToInt32(answer, 4)
                                + ", " + received.Length + " bytes, from " + received.From);
                            return 1;
                        }

                        microseconds[answered++] = (Stopwatch.GetTimestamp() - sent) * 1e6 / Stopwatch.Frequency;
                    }
                }
            }

            if (answered == 0)
            {
                Console.Error.WriteLine("LoadClient: nobody answers on port " + server.Port);
                return 1;
            }

            Array.Sort(microseconds, 0, answered);
            Console.WriteLine(
                "{0} answered, {1} lost; round trip of {2} in flight: median {3:0} us, p99 {4:0} us",
                answered, lost, InFlight, microseconds[answered / 2], microseconds[(int)(answered * 0.99)]);
            return lost * 100 > clients.Length * rounds ? 1 : 0;
        }

        private static void Number(byte[] packet, int client, int round)
        {
            BitConverter.TryWriteBytes(packet.AsSpan(0, 4), client);
            BitConverter.TryWriteBytes(packet.AsSpan(4, 4), round);
        }
    }
}
