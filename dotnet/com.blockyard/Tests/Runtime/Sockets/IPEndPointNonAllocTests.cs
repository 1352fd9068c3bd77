using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using Blockyard.Diagnostics;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>The interface of where-allocation, used on ordinary sockets.</summary>
    [TestFixture("127.0.0.1")]
    [TestFixture("::1")]
    public class IPEndPointNonAllocTests
    {
        private readonly IPAddress loopback;
        private readonly IPAddress any;
        private Socket server = null!;
        private Socket client = null!;
        private Socket otherClient = null!;

        public IPEndPointNonAllocTests(string address)
        {
            loopback = IPAddress.Parse(address);
            any = loopback.AddressFamily == AddressFamily.InterNetwork ? IPAddress.Any : IPAddress.IPv6Any;
        }

        private IPEndPointNonAlloc Reusable => new IPEndPointNonAlloc(any, 0);

        [SetUp]
        public void Open()
        {
            server = Bound();
            client = Bound();
            otherClient = Bound();
        }

        [TearDown]
        public void Close()
        {
            server.Close();
            client.Close();
            otherClient.Close();
        }

        [Test]
        public void the_usual_server_loop_runs_unchanged()
        {
            byte[] buffer = new byte[1500];
            IPEndPointNonAlloc reusable = Reusable;
            Dictionary<int, IPEndPoint> clients = new Dictionary<int, IPEndPoint>();
            Send(client, 1);
            Send(otherClient, 1);
            Send(client, 1);
            int received = 0;
            while (server.Poll(0, SelectMode.SelectRead))
            {
                int size = server.ReceiveFrom_NonAlloc(buffer, 0, buffer.Length, SocketFlags.None, reusable);
                int connectionId = reusable.GetHashCode();
                if (!clients.ContainsKey(connectionId))
                {
                    clients.Add(connectionId, reusable.DeepCopyIPEndPoint());
                }

                Assert.AreEqual(1, size);
                received++;
            }

            Assert.AreEqual(3, received);
            Assert.AreEqual(2, clients.Count);
            foreach (IPEndPoint copy in clients.Values)
            {
                IPEndPointNonAlloc target = new IPEndPointNonAlloc(copy.Address, copy.Port);
                Assert.AreEqual(5, server.SendTo_NonAlloc(buffer, 0, 5, SocketFlags.None, target));
            }

            IPEndPointNonAlloc sender = Reusable;
            Assert.AreEqual(5, client.ReceiveFrom_NonAlloc(buffer, sender));
            Assert.AreEqual(5, otherClient.ReceiveFrom_NonAlloc(buffer, sender));
            Assert.AreEqual(server.LocalEndPoint, sender.DeepCopyIPEndPoint());
        }

        [Test]
        public void trap_1_the_hash_of_a_received_address_is_that_of_the_whole_address()
        {
            IPEndPointNonAlloc reusable = Receive(client);
            int hash = reusable.GetHashCode();
            Assert.AreNotEqual(0, hash, "the runtime's own hash of a received address is 0 on Mono");
            Assert.AreNotEqual(hash, Receive(otherClient).GetHashCode());
            Assert.AreEqual(hash, Receive(client).GetHashCode());
            Assert.AreEqual(hash, new IPEndPointNonAlloc(loopback, Port(client)).GetHashCode(), "received or made");
        }

        [Test]
        public void trap_1_a_received_address_equals_a_serialized_one()
        {
            IPEndPointNonAlloc reusable = Receive(client);
            IPEndPointNonAlloc made = new IPEndPointNonAlloc(loopback, Port(client));
            Assert.IsTrue(reusable.Equals(made), "the runtime's addresses differ in length on Mono");
            Assert.IsTrue(reusable.DeepCopyIPEndPoint().Equals(client.LocalEndPoint));
            Assert.IsFalse(reusable.Equals(otherClient.LocalEndPoint));
        }

        [Test]
        public void equality_is_symmetric_and_equal_end_points_of_a_kind_have_equal_hashes()
        {
            IPEndPointNonAlloc received = Receive(client);
            IPEndPoint setThroughBase = Receive(client);
            setThroughBase.Address = loopback;
            setThroughBase.Port = Port(otherClient);
            IPEndPointNonAlloc set = Receive(client);
            set.Address = any;
            set.Port = Port(otherClient);
            EndPoint[] all =
            {
                received,
                received.DeepCopyIPEndPoint(),
                setThroughBase,
                set,
                Receive(otherClient),
                Reusable,
                new IPEndPointNonAlloc(loopback, Port(client)),
                new IPEndPoint(loopback, Port(client)),
                new IPEndPoint(loopback, Port(otherClient)),
                new IPEndPoint(any, Port(client)),
                new IPEndPoint(any, Port(otherClient)),
                new IPEndPoint(any, 0),
            };
            foreach (EndPoint one in all)
            {
                foreach (EndPoint other in all)
                {
                    string pair = one.GetType().Name + " " + one + " and " + other.GetType().Name + " " + other;
                    Assert.AreEqual(one.Equals(other), other.Equals(one), pair);
                    bool alike = one.Equals(other) && one.GetType() == other.GetType();
                    Assert.IsTrue(!alike || one.GetHashCode() == other.GetHashCode(), pair);
                    Assert.IsTrue(!one.Equals(other) || one.ToString() == other.ToString(), pair);
                }
            }
        }

        [Test]
        public void the_temp_field_of_where_allocation_is_the_last_received_address()
        {
            Runtime.IgnoreOnCore();
#pragma warning disable CS0618 // it is obsolete, and code written for where-allocation uses it
            IPEndPointNonAlloc reusable = Reusable;
            Assert.AreSame(reusable.Serialize(), reusable.temp);
            foreach (Socket from in new[] { client, otherClient, client })
            {
                Send(from, 1);
                server.ReceiveFrom_NonAlloc(new byte[10], reusable);
                Assert.AreEqual(new SocketAddr((IPEndPoint)from.LocalEndPoint!), SocketAddr.From(reusable.temp));
                Assert.AreNotEqual(0, reusable.temp.GetHashCode(), "some servers use it as an identifier");
                SocketAddress copied = reusable.DeepCopyIPEndPoint().Serialize();
                Assert.AreEqual(copied.GetHashCode(), reusable.temp.GetHashCode());
                Assert.AreEqual(copied.GetHashCode(), reusable.GetHashCode());
            }

            Assert.AreSame(reusable, reusable.Create(reusable.temp));
            reusable.temp = otherClient.LocalEndPoint!.Serialize();
            server.SendTo_NonAlloc(new byte[6], 0, 6, SocketFlags.None, reusable);
            Assert.AreEqual(6, otherClient.Receive(new byte[10]));
#pragma warning restore CS0618
        }

        [Test]
        public void a_deep_copy_is_an_ordinary_end_point()
        {
            IPEndPoint copy = Receive(client).DeepCopyIPEndPoint();
            Assert.AreEqual(typeof(IPEndPoint), copy.GetType());
            Assert.AreEqual(client.LocalEndPoint, copy);
            Assert.AreEqual(client.LocalEndPoint!.GetHashCode(), copy.GetHashCode());
        }

        [Test]
        public void a_deep_copy_equals_the_original_until_another_packet_comes()
        {
            IPEndPointNonAlloc reusable = Receive(client);
            IPEndPoint copy = reusable.DeepCopyIPEndPoint();
            Assert.IsTrue(copy.Equals(reusable));
            Assert.IsTrue(reusable.Equals(copy));
            Send(otherClient, 1);
            server.ReceiveFrom_NonAlloc(new byte[10], reusable);
            Assert.IsFalse(copy.Equals(reusable));
            Assert.IsFalse(reusable.Equals(copy));
        }

        [TestCase(true)]
        [TestCase(false)]
        public void a_receive_that_fails_leaves_the_last_sender(bool ofTheSocketItself)
        {
            IPEndPointNonAlloc reusable = Receive(client);
            IPEndPoint copy = reusable.DeepCopyIPEndPoint();
            server.Blocking = false;
            EndPoint asEndPoint = reusable;
            SocketException error = Assert.Throws<SocketException>(() =>
            {
                if (ofTheSocketItself)
                {
                    server.ReceiveFrom(new byte[10], 0, 10, SocketFlags.None, ref asEndPoint);
                }
                else
                {
                    server.ReceiveFrom_NonAlloc(new byte[10], reusable);
                }
            })!;
            Assert.AreEqual(SocketError.WouldBlock, error.SocketErrorCode);
            Assert.AreEqual(copy.ToString(), reusable.ToString());
            Assert.AreEqual(copy, reusable.DeepCopyIPEndPoint());
            Assert.AreEqual(Port(client), reusable.Port);
#pragma warning disable CS0618 // code written for where-allocation uses it
            Assert.AreEqual(reusable.Addr, SocketAddr.From(reusable.temp));
#pragma warning restore CS0618
            Assert.AreEqual(3, server.SendTo_NonAlloc(new byte[3], 0, 3, SocketFlags.None, reusable));
            Assert.AreEqual(3, client.Receive(new byte[10]));
            Send(otherClient, 1);
            server.Blocking = true;
            server.ReceiveFrom_NonAlloc(new byte[10], reusable);
            Assert.AreEqual(Port(otherClient), reusable.Port);
        }

        [Test]
        public void trap_2_the_port_is_the_sender_s()
        {
            IPEndPointNonAlloc reusable = Receive(client);
            IPEndPoint asBase = reusable;
            Assert.AreEqual(Port(client), reusable.Port);
            Assert.AreEqual(Port(client), asBase.Port);
            Assert.AreEqual(loopback, reusable.Address);
            Assert.AreEqual(client.LocalEndPoint!.ToString(), reusable.ToString());
        }

        [Test]
        public void a_deep_copy_keeps_what_it_was_when_the_next_packet_comes()
        {
            byte[] buffer = new byte[10];
            IPEndPointNonAlloc reusable = Reusable;
            Send(client, 1);
            server.ReceiveFrom_NonAlloc(buffer, reusable);
            IPEndPoint copy = reusable.DeepCopyIPEndPoint();
            Send(otherClient, 1);
            server.ReceiveFrom_NonAlloc(buffer, reusable);
            Assert.AreEqual(client.LocalEndPoint, copy);
            Assert.AreEqual(Port(otherClient), reusable.Port);
        }

        [Test]
        public void a_dictionary_keyed_by_addresses_is_looked_up_by_the_reused_end_point_s()
        {
            Dictionary<SocketAddr, string> clients = new Dictionary<SocketAddr, string>
            {
                { Receive(client).Addr, "client" },
                { new SocketAddr(Receive(otherClient).DeepCopyIPEndPoint()), "other" },
            };
            Assert.AreEqual("client", clients[Receive(client).Addr]);
            Assert.AreEqual("other", clients[Receive(otherClient).Addr]);
        }

        [Test]
        public void setting_address_or_port_changes_where_it_sends()
        {
            IPEndPointNonAlloc target = Receive(client);
            target.Port = Port(otherClient);
            Assert.AreEqual(Port(otherClient), target.Port);
            server.SendTo_NonAlloc(new byte[7], 0, 7, SocketFlags.None, target);
            Assert.AreEqual(7, otherClient.Receive(new byte[10]));
            ((IPEndPoint)target).Port = Port(client);
            server.SendTo_NonAlloc(new byte[8], 0, 8, SocketFlags.None, target);
            Assert.AreEqual(8, client.Receive(new byte[10]));
            target.Address = any;
            Assert.AreEqual(any, target.Address);
        }

        [Test]
        public void asking_a_socket_for_its_own_address_does_not_disturb_the_sender_s()
        {
            IPEndPointNonAlloc reusable = Receive(client);
            EndPoint? local = server.LocalEndPoint;
            Assert.AreEqual(new SocketAddr((IPEndPoint)client.LocalEndPoint!), reusable.Addr);
            Receive(otherClient);
            Assert.AreEqual(local, server.LocalEndPoint);
            server.SendTo_NonAlloc(new byte[1], 0, 1, SocketFlags.None, reusable);
            Assert.AreEqual(local, server.LocalEndPoint);
            Assert.AreEqual(new SocketAddr((IPEndPoint)client.LocalEndPoint!), reusable.Addr);
        }

        [Test]
        public void it_works_with_the_socket_s_own_ReceiveFrom_too()
        {
            Runtime.IgnoreOnCore();
            IPEndPointNonAlloc reusable = Reusable;
            EndPoint asEndPoint = reusable;
            Send(client, 3);
            Assert.AreEqual(3, server.ReceiveFrom(new byte[10], 0, 10, SocketFlags.None, ref asEndPoint));
            Assert.AreSame(reusable, asEndPoint);
            Assert.AreEqual(new SocketAddr((IPEndPoint)client.LocalEndPoint!), reusable.Addr);
        }

        [Test]
        public void an_address_of_another_family_is_refused()
        {
            IPAddress foreign =
                loopback.AddressFamily == AddressFamily.InterNetwork ? IPAddress.IPv6Loopback : IPAddress.Loopback;
            Assert.Throws<ArgumentException>(() => Reusable.Create(new IPEndPoint(foreign, 1).Serialize()));
            Assert.Throws<ArgumentNullException>(() => Reusable.Create(null!));
        }

        [Test]
        public void bytes_a_receive_are_within_what_the_runtime_itself_makes()
        {
            Runtime.IgnoreOnCore();
            byte[] buffer = new byte[1500];
            IPEndPointNonAlloc reusable = Reusable;
            Receive(client);
            const int Packets = 100;
            AllocationMeasurement measured = default;
            for (int round = 0; round < 2; round++)
            {
                for (int i = 0; i < Packets; i++)
                {
                    Send(client, 64);
                }

                measured = AllocationMeter.Measure(() =>
                {
                    for (int i = 0; i < Packets; i++)
                    {
                        server.ReceiveFrom_NonAlloc(buffer, 0, buffer.Length, SocketFlags.None, reusable);
                    }
                });
            }

            int limit = !Runtime.IsMono ? 0 : loopback.AddressFamily == AddressFamily.InterNetwork ? 96 : 104;
            Assert.IsTrue(measured.IsKnown);
            Assert.That(measured.Bytes, Is.LessThanOrEqualTo(limit * Packets));
        }

        [Test]
        public void a_send_allocates_nothing()
        {
            Runtime.IgnoreOnCore();
            byte[] buffer = new byte[64];
            IPEndPointNonAlloc target = new IPEndPointNonAlloc(loopback, Port(server));
            AllocationAssert.Zero(
                () => client.SendTo_NonAlloc(buffer, 0, 64, SocketFlags.None, target), warmUps: 3, repeats: 100);
        }

#if NET8_0_OR_GREATER
        [Test]
        public void spans_are_sent_and_received()
        {
            IPEndPointNonAlloc target = new IPEndPointNonAlloc(loopback, Port(server));
            Span<byte> buffer = stackalloc byte[10];
            buffer[0] = 7;
            Assert.AreEqual(3, client.SendTo_NonAlloc(buffer.Slice(0, 3), SocketFlags.None, target));
            buffer.Clear();
            IPEndPointNonAlloc sender = Reusable;
            Assert.AreEqual(3, server.ReceiveFrom_NonAlloc(buffer, SocketFlags.None, sender));
            Assert.AreEqual(7, buffer[0]);
            Assert.AreEqual(client.LocalEndPoint, sender.DeepCopyIPEndPoint());
        }
#endif

        [Test]
        public void an_IPv4_end_point_receives_on_a_dual_mode_socket()
        {
            if (loopback.AddressFamily != AddressFamily.InterNetworkV6)
            {
                return;
            }

            using Socket dual = new Socket(AddressFamily.InterNetworkV6, SocketType.Dgram, ProtocolType.Udp);
            using Socket four = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
            dual.DualMode = true;
            ShareNoPort(dual);
            ShareNoPort(four);
            dual.Bind(new IPEndPoint(IPAddress.IPv6Any, 0));
            four.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            four.SendTo(new byte[3], new IPEndPoint(IPAddress.Loopback, Port(dual)));
            IPEndPointNonAlloc sender = new IPEndPointNonAlloc(IPAddress.IPv6Any, 0);
            Assert.AreEqual(3, dual.ReceiveFrom_NonAlloc(new byte[10], sender));
            Assert.AreEqual(new SocketAddr((IPEndPoint)four.LocalEndPoint!), sender.Addr.MapToIPv4());
        }

        private static int Port(Socket socket) => ((IPEndPoint)socket.LocalEndPoint!).Port;

        private Socket Bound()
        {
            Socket socket = new Socket(loopback.AddressFamily, SocketType.Dgram, ProtocolType.Udp);
            ShareNoPort(socket);
            socket.Bind(new IPEndPoint(loopback, 0));
            socket.ReceiveTimeout = 5000;
            return socket;
        }

        /// <summary>Turns off sharing of ports, which Mono allows by default: two clients could get the same
        /// port.</summary>
        private static void ShareNoPort(Socket socket) =>
            socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReuseAddress, false);

        private void Send(Socket from, int size) => from.SendTo(new byte[size], server.LocalEndPoint!);

        private IPEndPointNonAlloc Receive(Socket from)
        {
            IPEndPointNonAlloc reusable = Reusable;
            Send(from, 1);
            server.ReceiveFrom_NonAlloc(new byte[10], reusable);
            return reusable;
        }
    }
}
