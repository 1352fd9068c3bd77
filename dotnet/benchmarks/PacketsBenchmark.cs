using System;
using System.IO;
using System.Net;
using System.Net.Sockets;
using Blockyard.Diagnostics;
using Blockyard.Sockets;

namespace Blockyard.Benchmarks
{
    /// <summary>ns of CPU time and bytes of garbage per packet, for every way of receiving and sending.</summary>
    /// <remarks>
    /// 64-byte packets from and to 250 clients, each with its own socket. A round receives 250 waiting packets and
    /// sends 250. The ways take turns within a round, and the medians over all rounds are printed. On loopback, the
    /// time of a send includes the kernel's receiving, which runs on the sender's thread; out of a device, as on a
    /// server, it does not. Sending is measured with one packet per client in turn, and with four in a row per client,
    /// like a state that needs several packets. Two more ways are loops in C of the same calls
    /// (<see cref="NativeCalls"/>), if they were built: the lower limit for any library that makes these calls.
    /// </remarks>
    internal sealed class PacketsBenchmark
    {
        private const int Clients = 250;
        private const int Rounds = 220;
        private const int WarmUps = 20;
        private const int PacketSize = 64;
        private const int Several = 4;

        private readonly UdpSocket[] clients;
        private readonly SocketAddr[] addresses = new SocketAddr[Clients];
        private readonly IPEndPoint[] endPoints = new IPEndPoint[Clients];
        private readonly IPEndPointNonAlloc[] reusedTargets = new IPEndPointNonAlloc[Clients];
        private readonly IPEndPointNonAlloc reused;
        private readonly EndPoint any;
        private readonly Socket socket;
        private readonly UdpSocket server;
        private readonly DatagramBatch incoming = new DatagramBatch(64, 1500);
        private readonly DatagramBatch outgoing = new DatagramBatch(Clients, PacketSize);
        private readonly DatagramBatch severalEach = new DatagramBatch(Clients * Several, PacketSize);
        private readonly byte[] buffer = new byte[1500];
        private readonly bool hasNative;

        private PacketsBenchmark(IPAddress local, UdpSocket[] clients, Func<int, SocketAddr> addressOf)
        {
            IPAddress anyAddress =
                local.AddressFamily == AddressFamily.InterNetwork ? IPAddress.Any : IPAddress.IPv6Any;
            any = new IPEndPoint(anyAddress, 0);
            reused = new IPEndPointNonAlloc(anyAddress, 0);
            socket = new Socket(local.AddressFamily, SocketType.Dgram, ProtocolType.Udp);
            socket.Bind(new IPEndPoint(local, 0));
            socket.ReceiveBufferSize = 1 << 20;
            server = new UdpSocket(socket, UdpBackend.Automatic, ownsSocket: false);
            this.clients = clients;
            for (int i = 0; i < Clients; i++)
            {
                addresses[i] = addressOf(i);
                endPoints[i] = addresses[i].ToIPEndPoint();
                reusedTargets[i] = new IPEndPointNonAlloc(endPoints[i].Address, endPoints[i].Port);
                outgoing.Add(PacketSize, addresses[i]);
                for (int packet = 0; packet < Several; packet++)
                {
                    severalEach.Add(PacketSize, addresses[i]);
                }
            }

            hasNative = NativeCalls.TryAdd(addresses);
        }

        internal static void Run(string address)
        {
            IPAddress loopback = IPAddress.Parse(address);
            UdpSocket[] clients = new UdpSocket[Clients];
            for (int i = 0; i < Clients; i++)
            {
                clients[i] = UdpSocket.Bind(new IPEndPoint(loopback, 0));
            }

            PacketsBenchmark benchmark = new PacketsBenchmark(loopback, clients, i => clients[i].LocalAddress);
            benchmark.Measure("receive", 1, benchmark.FillServer, new (string, Action)[]
            {
                ("plain", benchmark.ReceivePlain),
                ("nonalloc", benchmark.ReceiveNonAlloc),
                ("single", benchmark.ReceiveSingle),
                ("batch", benchmark.ReceiveBatch),
                ("c_single", () => NativeCalls.ReceiveEach(benchmark.socket.Handle, Clients)),
                ("c_batch", () => NativeCalls.ReceiveBatch(benchmark.socket.Handle, Clients)),
            });
            benchmark.MeasureSending("send");
        }

        /// <summary>Sends to clients elsewhere, through a device that drops all packets. Each client has its own
        /// address.</summary>
        internal static void RunOutbound(string firstAddress, string device)
        {
            IPAddress first = IPAddress.Parse(firstAddress);
            IPAddress local = first.AddressFamily == AddressFamily.InterNetwork ? IPAddress.Any : IPAddress.IPv6Any;
            PacketsBenchmark benchmark = new PacketsBenchmark(local, Array.Empty<UdpSocket>(), i =>
            {
                byte[] bytes = first.GetAddressBytes();
                bytes[bytes.Length - 1] += (byte)i;
                return new SocketAddr(new IPAddress(bytes), 20000 + i);
            });
            long before = PacketsOf(device);
            benchmark.MeasureSending("outbound");
            long ways = benchmark.hasNative ? 6 : 4;

            // The device may get several datagrams as one packet, which it would cut itself.
            if (PacketsOf(device) - before < ways * Rounds * Clients)
            {
                throw new InvalidOperationException("Packets did not reach " + device + ": the measurement is void.");
            }
        }

        /// <summary>The number of packets that the device got so far. A device that drops all packets may count them as
        /// received.</summary>
        private static long PacketsOf(string device)
        {
            foreach (string line in File.ReadAllLines("/proc/self/net/dev"))
            {
                string[] words = line.Split(new[] { ' ', ':' }, StringSplitOptions.RemoveEmptyEntries);
                if (words.Length > 10 && words[0] == device)
                {
                    return long.Parse(words[2]) + long.Parse(words[10]);
                }
            }

            throw new InvalidOperationException("There is no network device " + device + ".");
        }

        private void MeasureSending(string name)
        {
            Measure(name, 1, DrainClients, new (string, Action)[]
            {
                ("plain", () => SendPlain(1)),
                ("nonalloc", () => SendNonAlloc(1)),
                ("single", () => SendSingle(1)),
                ("batch", SendBatch),
                ("c_single", () => NativeCalls.SendEach(socket.Handle, 1)),
                ("c_batch", () => NativeCalls.SendBatch(socket.Handle, 1)),
            });
            Measure(name + "_several", Several, DrainClients, new (string, Action)[]
            {
                ("plain", () => SendPlain(Several)),
                ("nonalloc", () => SendNonAlloc(Several)),
                ("single", () => SendSingle(Several)),
                ("batch", SendSeveralBatched),
                ("c_single", () => NativeCalls.SendEach(socket.Handle, Several)),
                ("c_batch", () => NativeCalls.SendBatch(socket.Handle, Several)),
            });
        }

        private void Measure(string direction, int packetsEach, Action prepare, (string Name, Action Way)[] all)
        {
            (string Name, Action Way)[] ways = hasNative ? all : Array.FindAll(all, way => !way.Name.StartsWith("c_"));
            double packets = Clients * packetsEach;
            for (int round = 0; round < Rounds; round++)
            {
                for (int i = 0; i < ways.Length; i++)
                {
                    int which = (round + i) % ways.Length;
                    prepare();
                    long start = 0;
                    long took = 0;
                    Action way = ways[which].Way;
                    AllocationMeasurement measured = AllocationMeter.Measure(() =>
                    {
                        start = ProcessCost.ThreadNanoseconds();
                        way();
                        took = ProcessCost.ThreadNanoseconds() - start;
                    });
                    if (round >= WarmUps)
                    {
                        string name = direction + "_" + ways[which].Name;
                        Result.Add(name + "_ns", took / packets);
                        Result.Add(name + "_bytes", measured.Bytes / packets);
                    }
                }
            }
        }

        private void FillServer()
        {
            SocketAddr to = server.LocalAddress;
            for (int i = 0; i < Clients; i++)
            {
                clients[i].TrySend(new ReadOnlySpan<byte>(buffer, 0, PacketSize), to);
            }
        }

        private void DrainClients()
        {
            foreach (UdpSocket client in clients)
            {
                while (client.TryReceive(buffer, out _))
                {
                }
            }
        }

        private void ReceivePlain()
        {
            EndPoint from = any;
            for (int i = 0; i < Clients; i++)
            {
                Check(socket.ReceiveFrom(buffer, 0, buffer.Length, SocketFlags.None, ref from));
            }
        }

        private void ReceiveNonAlloc()
        {
            for (int i = 0; i < Clients; i++)
            {
                Check(socket.ReceiveFrom_NonAlloc(buffer, 0, buffer.Length, SocketFlags.None, reused));
            }
        }

        private void ReceiveSingle()
        {
            for (int i = 0; i < Clients; i++)
            {
                server.TryReceive(buffer, out Received received);
                Check(received.Length);
            }
        }

        private void ReceiveBatch()
        {
            for (int left = Clients; left > 0; left -= incoming.Count)
            {
                server.ReceiveBatch(incoming);
                Check(incoming[0].Length);
            }
        }

        private void SendPlain(int each)
        {
            for (int i = 0; i < Clients * each; i++)
            {
                Check(socket.SendTo(buffer, 0, PacketSize, SocketFlags.None, endPoints[i / each]));
            }
        }

        private void SendNonAlloc(int each)
        {
            for (int i = 0; i < Clients * each; i++)
            {
                Check(socket.SendTo_NonAlloc(buffer, 0, PacketSize, SocketFlags.None, reusedTargets[i / each]));
            }
        }

        private void SendSingle(int each)
        {
            for (int i = 0; i < Clients * each; i++)
            {
                bool isSent = server.TrySend(new ReadOnlySpan<byte>(buffer, 0, PacketSize), addresses[i / each]);
                Check(isSent ? PacketSize : 0);
            }
        }

        private void SendBatch() => Check(server.SendBatch(outgoing) == Clients ? PacketSize : 0);

        private void SendSeveralBatched() => Check(server.SendBatch(severalEach) == Clients * Several ? PacketSize : 0);

        private static void Check(int size)
        {
            if (size != PacketSize)
            {
                throw new InvalidOperationException("A packet of " + size + " bytes: the measurement is void.");
            }
        }
    }
}
