using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Single datagrams, on each back end of the runtime, on IPv4 and IPv6.</summary>
    public class UdpSocketTests : UdpFixture
    {
        public UdpSocketTests(string backend, string address)
            : base(backend, address)
        {
        }

        [Test]
        public void system_calls_go_by_function_pointer_on_Mono_alone()
        {
            if (Backend != UdpBackend.LinuxNative)
            {
                Assert.Ignore("this back end makes no system calls of its own");
            }

            Assert.AreEqual(Runtime.IsMono, DirectCalls.AreUsed);
        }

        [Test]
        public void the_back_end_is_shown()
        {
            Assert.AreEqual(Backend, Server.Backend);
        }

        [Test]
        public void no_two_sockets_share_a_port()
        {
            // If sharing is allowed, as by default on Mono, a few of these share a port.
            HashSet<int> ports = new HashSet<int>();
            List<UdpSocket> sockets = new List<UdpSocket>();
            for (int i = 0; i < 600; i++)
            {
                sockets.Add(UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend));
                ports.Add(sockets[i].LocalAddress.Port);
            }

            sockets.ForEach(socket => socket.Dispose());
            Assert.AreEqual(600, ports.Count);
            AssertFails(
                SocketError.AddressAlreadyInUse,
                () => UdpSocket.Bind(new IPEndPoint(Loopback, Server.LocalAddress.Port), Backend));
        }

        [TestCase(0)]
        [TestCase(1)]
        [TestCase(1472)]
        [TestCase(60000)]
        public void a_datagram_arrives_whole_with_its_sender(int size)
        {
            byte[] sent = new byte[size];
            new Random(size).NextBytes(sent);
            Assert.IsTrue(Client.TrySend(sent, Server.LocalAddress));
            byte[] buffer = new byte[65536];
            Assert.IsTrue(Server.Receive(buffer, 5000, out Received received));
            Assert.AreEqual(size, received.Length);
            Assert.IsFalse(received.IsTruncated);
            Assert.AreEqual(Client.LocalAddress, received.From);
            Assert.AreEqual(sent, new Span<byte>(buffer, 0, size).ToArray());
            Assert.IsFalse(Server.TryReceive(buffer, out _), "it came once");
        }

        [Test]
        public void a_datagram_that_does_not_fit_is_cut_and_says_so()
        {
            Client.TrySend(new byte[] { 1, 2, 3, 4, 5 }, Server.LocalAddress);
            Client.TrySend(new byte[] { 6 }, Server.LocalAddress);
            byte[] buffer = new byte[4];
            Assert.IsTrue(Server.Receive(buffer.AsSpan(0, 3), 5000, out Received received));
            Assert.IsTrue(received.IsTruncated);
            Assert.AreEqual(3, received.Length);
            Assert.AreEqual(new byte[] { 1, 2, 3, 0 }, buffer);
            Assert.IsTrue(
                Server.Receive(Span<byte>.Empty, 5000, out received), "a buffer of no bytes takes a datagram away");
            Assert.IsTrue(received.IsTruncated);
        }

        [Test]
        public void nothing_to_read_is_no_exception_and_no_garbage()
        {
            byte[] buffer = new byte[100];
            Assert.IsFalse(Server.TryReceive(buffer, out Received received));
            Assert.IsTrue(received.From.IsNone);
            AllocationAssert.Zero(() => Server.TryReceive(buffer, out _), warmUps: 5, repeats: 100);
            using DatagramBatch batch = new DatagramBatch();
            Assert.AreEqual(0, Server.ReceiveBatch(batch));
            AllocationAssert.Zero(() => Server.ReceiveBatch(batch), warmUps: 5, repeats: 100);
        }

        [Test]
        public void trap_8_a_would_block_exception_costs_hundreds_of_bytes_where_this_costs_none()
        {
            Server.Socket.Blocking = false;
            byte[] buffer = new byte[100];
            Action plain = () =>
            {
                try
                {
                    EndPoint from = new IPEndPoint(Loopback, 0);
                    Server.Socket.ReceiveFrom(buffer, ref from);
                    Assert.Fail("there was something to read");
                }
                catch (SocketException error) when (error.SocketErrorCode == SocketError.WouldBlock)
                {
                }
            };
            plain();
            Assert.That(AllocationMeter.Measure(plain).Bytes, Is.GreaterThan(300));
            AllocationAssert.Zero(() => Server.TryReceive(buffer, out _), warmUps: 5);
        }

        [Test]
        public void a_packet_received_and_sent_allocates_nothing()
        {
            if (!IsFreeOfGarbage)
            {
                Assert.Ignore("this back end may allocate on this runtime");
            }

            byte[] buffer = new byte[1500];
            SocketAddr to = Server.LocalAddress;
            AllocationAssert.Zero(
                () =>
                {
                    for (int i = 0; i < 20; i++)
                    {
                        Client.TrySend(new ReadOnlySpan<byte>(buffer, 0, 64), to);
                    }

                    for (int i = 0; i < 20; i++)
                    {
                        Server.TryReceive(buffer, out Received received);
                        Server.TrySend(new ReadOnlySpan<byte>(buffer, 0, received.Length), received.From);
                    }

                    while (Client.TryReceive(buffer, out _))
                    {
                    }
                },
                warmUps: 10,
                repeats: 20);
        }

        [Test]
        public void a_datagram_is_received_straight_into_an_allocator_s_item()
        {
            using UnmanagedAllocator<Packet> slots = new UnmanagedAllocator<Packet>(4, zeroed: false);
            Assert.IsFalse(Server.TryReceive(slots, out Ptr<Packet> slot, out _));
            Assert.IsTrue(slot.IsNull);
            Assert.AreEqual(0, slots.Statistics.LiveItems, "nothing was taken for nothing");
            Client.TrySend(new byte[] { 1, 0, 0, 0, 2, 0, 0, 0 }, Server.LocalAddress);
            Assert.IsTrue(Server.TryReceive(slots, out slot, out Received received));
            Assert.AreEqual(8, received.Length);
            Assert.AreEqual(1, slot.Value.Kind);
            Assert.AreEqual(2, slot.Value.Sequence);
            Assert.AreEqual(1, slots.Statistics.LiveItems);
        }

        [Test]
        public void a_wait_ends_when_its_time_is_over()
        {
            Stopwatch watch = Stopwatch.StartNew();
            Assert.IsFalse(Server.Receive(new byte[10], 60, out _));
            Assert.That(watch.ElapsedMilliseconds, Is.GreaterThanOrEqualTo(55));
            Assert.IsFalse(Server.Receive(new byte[10], 0, out _));
            Assert.Throws<ArgumentOutOfRangeException>(() => Server.Receive(new byte[10], -2, out _));
        }

        [Test]
        public void use_after_dispose_throws()
        {
            SocketAddr to = Client.LocalAddress;
            Server.Dispose();
            using DatagramBatch batch = new DatagramBatch();
            Assert.Throws<ObjectDisposedException>(() => Server.TryReceive(new byte[1], out _));
            Assert.Throws<ObjectDisposedException>(() => Server.TrySend(new byte[1], to));
            Assert.Throws<ObjectDisposedException>(() => Server.ReceiveBatch(batch));
            Assert.Throws<ObjectDisposedException>(() => Server.SendBatch(batch));
            Assert.Throws<ObjectDisposedException>(() => Server.Receive(new byte[1], -1, out _));
            batch.Dispose();
            batch.Dispose();
            Assert.Throws<ObjectDisposedException>(() => Client.ReceiveBatch(batch));
            Assert.Throws<ObjectDisposedException>(() => batch.TryAdd(new byte[1], to));
        }

        [Test]
        public void no_batch_is_an_error()
        {
            Assert.Throws<ArgumentNullException>(() => Server.ReceiveBatch(null!));
            Assert.Throws<ArgumentNullException>(() => Server.SendBatch(null!));
        }

        [Test]
        public void a_socket_that_was_closed_underneath_is_not_taken_for_another_file()
        {
            if (Runtime.IsMono)
            {
                Assert.Ignore("this runtime does not tell whether a socket is closed");
            }

            SocketAddr self = Server.LocalAddress;
            Server.Socket.Dispose();
            using UdpSocket other = UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend);
            using DatagramBatch batch = new DatagramBatch(2, 10);
            Assert.Throws<ObjectDisposedException>(() => Server.TryReceive(new byte[10], out _));
            Assert.Throws<ObjectDisposedException>(() => Server.TrySend(new byte[10], self));
            Assert.Throws<ObjectDisposedException>(() => Server.ReceiveBatch(batch));
            batch.TryAdd(new byte[10], self);
            Assert.Throws<ObjectDisposedException>(() => Server.SendBatch(batch));
            Assert.Throws<ObjectDisposedException>(() => Server.Receive(new byte[10], 0, out _));
            Server.Dispose();
            Assert.IsFalse(other.TryReceive(new byte[10], out _), "not shut down");
        }

        [Test]
        public void an_earlier_datagram_that_was_refused_disturbs_no_later_call()
        {
            UdpSocket gone = UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend);
            SocketAddr nobody = gone.LocalAddress;
            gone.Dispose();
            byte[] buffer = new byte[10];
            for (int i = 0; i < 5; i++)
            {
                Assert.IsTrue(Client.TrySend(new byte[3], nobody));
                Assert.IsFalse(Client.TryReceive(buffer, out _));
            }

            Assert.IsTrue(Client.TrySend(new byte[3], Server.LocalAddress));
            Assert.IsTrue(Server.Receive(buffer, 5000, out _));
        }

        [Test]
        public void what_can_t_be_sent_is_an_error_with_its_code()
        {
            AssertFails(SocketError.MessageSize, () => Client.TrySend(new byte[65536], Server.LocalAddress));
            AssertFails(SocketError.AddressFamilyNotSupported, () => Client.TrySend(new byte[1], default));
            if (Loopback.AddressFamily == AddressFamily.InterNetwork)
            {
                SocketAddr six = new SocketAddr(IPAddress.IPv6Loopback, 1);
                AssertFails(SocketError.AddressFamilyNotSupported, () => Client.TrySend(new byte[1], six));
            }
        }

        [Test]
        public void broadcasting_must_be_enabled()
        {
            if (Loopback.AddressFamily != AddressFamily.InterNetwork)
            {
                return;
            }

            using UdpSocket listener = UdpSocket.Bind(new IPEndPoint(IPAddress.Any, 0), Backend);
            using UdpSocket caller = UdpSocket.Bind(new IPEndPoint(IPAddress.Loopback, 0), Backend);
            SocketAddr everyone = new SocketAddr(IPAddress.Parse("127.255.255.255"), listener.LocalAddress.Port);
            AssertFails(SocketError.AccessDenied, () => caller.TrySend(new byte[3], everyone));
            caller.EnableBroadcast = true;
            Assert.IsTrue(caller.EnableBroadcast);
            Assert.IsTrue(caller.TrySend(new byte[3], everyone));
            Assert.IsTrue(listener.Receive(new byte[10], 5000, out Received received));
            Assert.AreEqual(caller.LocalAddress, received.From);
        }

        [Test]
        public void a_dual_mode_socket_speaks_with_both()
        {
            using UdpSocket dual = UdpSocket.BindDualMode(0, Backend);
            byte[] buffer = new byte[10];
            SocketAddr to = new SocketAddr(Loopback, dual.LocalAddress.Port);
            Assert.IsTrue(Client.TrySend(new byte[] { 1 }, to));
            Assert.IsTrue(dual.Receive(buffer, 5000, out Received received));
            Assert.AreEqual(dual.LocalAddress.Family, received.From.Family, "IPv4 only where IPv6 is missing");
            Assert.AreEqual(Client.LocalAddress, received.From.MapToIPv4());
            Assert.IsTrue(dual.TrySend(new byte[] { 2, 2 }, received.From));
            Assert.IsTrue(dual.TrySend(new byte[] { 3, 3, 3 }, Client.LocalAddress), "IPv4 as it is will do");
            Assert.IsTrue(Client.Receive(buffer, 5000, out received));
            Assert.AreEqual(2, received.Length);
            Assert.IsTrue(Client.Receive(buffer, 5000, out received));
            Assert.AreEqual(3, received.Length);
            using DatagramBatch batch = new DatagramBatch(4, 10);
            batch.TryAdd(new byte[4], Client.LocalAddress);
            Assert.AreEqual(1, dual.SendBatch(batch));
            Assert.IsTrue(Client.Receive(buffer, 5000, out received));
            Assert.AreEqual(to, received.From);
        }
    }
}
