using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using Blockyard.Diagnostics;
using Blockyard.Sockets;

namespace Blockyard.Benchmarks
{
    /// <summary>Bytes of garbage per server frame: it receives an input of every client, looks up the client, and sends
    /// a state back.</summary>
    internal sealed class FrameBenchmark
    {
        private const int Frames = 20;
        private const int WarmUps = 5;
        private const int InputSize = 32;
        private const int StateSize = 200;

        private readonly UdpSocket[] clients;
        private readonly Socket socket;
        private readonly UdpSocket server;
        private readonly byte[] buffer = new byte[1500];
        private readonly IPAddress any;
        private readonly Dictionary<EndPoint, Client> byEndPoint = new Dictionary<EndPoint, Client>();
        private readonly Dictionary<int, Client> byHash = new Dictionary<int, Client>();
        private readonly ClientTable<Client> byAddress = new ClientTable<Client>();
        private readonly IPEndPointNonAlloc reused;
        private readonly DatagramBatch incoming = new DatagramBatch(64, 1500);
        private readonly DatagramBatch outgoing = new DatagramBatch(64, 1500);

        private FrameBenchmark(IPAddress loopback, int count)
        {
            any = loopback.AddressFamily == AddressFamily.InterNetwork ? IPAddress.Any : IPAddress.IPv6Any;
            reused = new IPEndPointNonAlloc(any, 0);
            socket = new Socket(loopback.AddressFamily, SocketType.Dgram, ProtocolType.Udp);
            socket.Bind(new IPEndPoint(loopback, 0));
            server = new UdpSocket(socket, UdpBackend.Automatic, ownsSocket: false);
            clients = new UdpSocket[count];
            for (int i = 0; i < count; i++)
            {
                clients[i] = UdpSocket.Bind(new IPEndPoint(loopback, 0));
            }
        }

        internal static void Run(string address, int count)
        {
            FrameBenchmark benchmark = new FrameBenchmark(IPAddress.Parse(address), count);
            benchmark.Measure("plain", benchmark.PlainFrame);
            benchmark.Measure("nonalloc", benchmark.NonAllocFrame);
            benchmark.Measure("udpsocket", benchmark.UdpSocketFrame);
            benchmark.Measure("batch", benchmark.BatchFrame);
        }

        /// <summary>In parts, so that no part overflows the socket's buffer. What the clients do is not
        /// counted.</summary>
        private void Measure(string name, Func<int> frame)
        {
            const int Part = 100;
            SocketAddr to = server.LocalAddress;
            for (int round = 0; round < Frames + WarmUps; round++)
            {
                long total = 0;
                for (int first = 0; first < clients.Length; first += Part)
                {
                    int part = Math.Min(Part, clients.Length - first);
                    for (int i = first; i < first + part; i++)
                    {
                        clients[i].TrySend(new ReadOnlySpan<byte>(buffer, 0, InputSize), to);
                    }

                    int served = 0;
                    total += AllocationMeter.Measure(() => served = frame()).Bytes;
                    for (int i = first; i < first + part; i++)
                    {
                        if (served != part || !clients[i].TryReceive(buffer, out Received received)
                            || received.Length != StateSize)
                        {
                            throw new InvalidOperationException("A packet was lost: the measurement is void.");
                        }
                    }
                }

                if (round >= WarmUps)
                {
                    Result.Add("frame_" + name + "_bytes", total);
                }
            }
        }

        private int PlainFrame()
        {
            int served = 0;
            while (socket.Poll(0, SelectMode.SelectRead))
            {
                EndPoint from = new IPEndPoint(any, 0);
                socket.ReceiveFrom(buffer, 0, buffer.Length, SocketFlags.None, ref from);
                if (!byEndPoint.TryGetValue(from, out Client? client))
                {
                    client = new Client();
                    byEndPoint.Add(from, client);
                }

                client.Inputs++;
                socket.SendTo(buffer, 0, StateSize, SocketFlags.None, from);
                served++;
            }

            return served;
        }

        private int NonAllocFrame()
        {
            int served = 0;
            while (socket.Poll(0, SelectMode.SelectRead))
            {
                socket.ReceiveFrom_NonAlloc(buffer, 0, buffer.Length, SocketFlags.None, reused);
                int id = reused.GetHashCode();
                if (!byHash.TryGetValue(id, out Client? client))
                {
                    IPEndPoint copy = reused.DeepCopyIPEndPoint();
                    client = new Client { Target = new IPEndPointNonAlloc(copy.Address, copy.Port) };
                    byHash.Add(id, client);
                }

                client.Inputs++;
                socket.SendTo_NonAlloc(buffer, 0, StateSize, SocketFlags.None, client.Target!);
                served++;
            }

            return served;
        }

        private int UdpSocketFrame()
        {
            int served = 0;
            while (server.TryReceive(buffer, out Received received))
            {
                Find(received.From).Inputs++;
                server.TrySend(new ReadOnlySpan<byte>(buffer, 0, StateSize), received.From);
                served++;
            }

            return served;
        }

        private int BatchFrame()
        {
            int served = 0;
            int count;
            while ((count = server.ReceiveBatch(incoming)) > 0)
            {
                outgoing.Clear();
                for (int i = 0; i < count; i++)
                {
                    SocketAddr from = incoming.AddressOf(i);
                    Find(from).Inputs++;
                    outgoing.Add(StateSize, from);
                }

                server.SendBatch(outgoing);
                served += count;
            }

            return served;
        }

        private Client Find(in SocketAddr from)
        {
            if (!byAddress.TryGet(from, out Client client))
            {
                client = new Client();
                byAddress.TryAdd(from, client);
            }

            return client;
        }

        private sealed class Client
        {
            internal int Inputs;
            internal IPEndPointNonAlloc? Target;
        }
    }
}
