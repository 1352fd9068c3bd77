using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Batches, on each back end of the runtime, on IPv4 and IPv6.</summary>
    public class DatagramBatchTests : UdpFixture
    {
        public DatagramBatchTests(string backend, string address)
            : base(backend, address)
        {
        }

        [Test]
        public void batches_sent_and_received_allocate_nothing()
        {
            if (!IsFreeOfGarbage)
            {
                Assert.Ignore("this back end may allocate on this runtime");
            }

            using DatagramBatch outgoing = new DatagramBatch(32, 200);
            using DatagramBatch incoming = new DatagramBatch(64, 200);
            SocketAddr to = Server.LocalAddress;
            byte[] bytes = new byte[100];
            int received = 0;
            AllocationAssert.Zero(
                () =>
                {
                    outgoing.Clear();
                    while (outgoing.TryAdd(bytes, to))
                    {
                    }

                    Client.SendBatch(outgoing);
                    received = Server.ReceiveBatch(incoming);
                },
                warmUps: 10,
                repeats: 20);
            Assert.AreEqual(32, received);
        }

        [Test]
        public void a_batch_larger_than_one_system_call_takes_arrives_whole_and_in_order()
        {
            const int Count = 200;
            Server.Socket.ReceiveBufferSize = 1 << 20;
            using DatagramBatch outgoing = new DatagramBatch(Count, 16);
            using DatagramBatch incoming = new DatagramBatch(Count, 16);
            for (int i = 0; i < Count; i++)
            {
                outgoing.Add(1, Server.LocalAddress)[0] = (byte)i;
            }

            Assert.AreEqual(Count, Client.SendBatch(outgoing));
            Assert.AreEqual(Count, Server.ReceiveBatch(incoming));
            for (int i = 0; i < Count; i++)
            {
                Assert.AreEqual((byte)i, incoming[i][0]);
            }

            Assert.AreEqual(Count - 150, Client.SendBatch(outgoing, first: 150), "and from the middle on");
            Assert.AreEqual(Count - 150, Server.ReceiveBatch(incoming));
            Assert.AreEqual(150, incoming[0][0]);
        }

        [TestCase(1)]
        [TestCase(2)]
        [TestCase(3)]
        public void runs_to_one_address_arrive_as_the_datagrams_that_they_are(int seed)
        {
            Random random = new Random(seed);
            using UdpSocket other = UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend);
            using DatagramBatch outgoing = new DatagramBatch(150, 20000);
            using DatagramBatch incoming = new DatagramBatch(64, 20000);
            UdpSocket[] servers = { Server, other };
            for (int round = 0; round < 20; round++)
            {
                // Each of the last rounds sends one long run, with more bytes or datagrams than one message may
                // have.
                outgoing.Clear();
                List<byte[]>[] expected = { new List<byte[]>(), new List<byte[]>() };
                while (outgoing.Count < (round < 16 ? 100 : 150) - 20)
                {
                    int to = random.Next(2);
                    int length = round == 19 ? 20000 : random.Next(4) == 0 ? 0 : random.Next(1, 300);
                    int run = round < 16 ? random.Next(1, 20) : round == 19 ? 7 : 130;
                    for (int i = 0; i < run; i++)
                    {
                        bool isLast = i == run - 1;
                        byte[] bytes = new byte[isLast && random.Next(2) == 0 ? length / 2 : length];
                        random.NextBytes(bytes);
                        Assert.IsTrue(outgoing.TryAdd(bytes, servers[to].LocalAddress));
                        expected[to].Add(bytes);
                    }

                    if (round == 19)
                    {
                        break;
                    }
                }

                foreach (UdpSocket server in servers)
                {
                    server.Socket.ReceiveBufferSize = 1 << 20;
                }

                Assert.AreEqual(outgoing.Count, Client.SendBatch(outgoing));
                for (int to = 0; to < servers.Length; to++)
                {
                    int seen = 0;
                    while (servers[to].ReceiveBatch(incoming) > 0)
                    {
                        for (int i = 0; i < incoming.Count; i++, seen++)
                        {
                            Assert.AreEqual(Client.LocalAddress, incoming.AddressOf(i));
                            Assert.IsTrue(
                                expected[to][seen].AsSpan().SequenceEqual(incoming[i]),
                                "datagram " + seen + " of round " + round);
                        }
                    }

                    Assert.AreEqual(expected[to].Count, seen, "round " + round);
                }
            }
        }

        [Test]
        public void a_batch_arrives_in_order_with_sizes_and_senders()
        {
            using UdpSocket other = UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend);
            using DatagramBatch outgoing = new DatagramBatch(50, 300);
            using DatagramBatch incoming = new DatagramBatch(16, 200);
            for (int i = 0; i < 50; i++)
            {
                Span<byte> bytes = outgoing.Add(i * 6, Server.LocalAddress);
                bytes.Fill((byte)i);
            }

            Assert.IsFalse(outgoing.TryAdd(new byte[1], Server.LocalAddress), "it is full");
            Assert.AreEqual(50, Client.SendBatch(outgoing));
            other.TrySend(new byte[] { 99 }, Server.LocalAddress);
            int seen = 0;
            int count;
            while ((count = Server.ReceiveBatch(incoming)) > 0)
            {
                Assert.AreEqual(count, incoming.Count);
                for (int i = 0; i < count; i++, seen++)
                {
                    if (seen == 50)
                    {
                        Assert.AreEqual(other.LocalAddress, incoming.AddressOf(i));
                        Assert.AreEqual(new byte[] { 99 }, incoming[i].ToArray());
                        continue;
                    }

                    Assert.AreEqual(Client.LocalAddress, incoming.AddressOf(i));
                    Assert.AreEqual(Math.Min(200, seen * 6), incoming[i].Length);
                    Assert.AreEqual(seen * 6 > 200, incoming.IsTruncated(i));
                    foreach (byte b in incoming[i])
                    {
                        Assert.AreEqual((byte)seen, b);
                    }
                }
            }

            Assert.AreEqual(51, seen);
            Assert.Throws<IndexOutOfRangeException>(() => incoming.AddressOf(0));
        }

        [Test]
        public void an_error_within_a_batch_is_thrown_by_the_call_that_begins_with_it()
        {
            using DatagramBatch batch = new DatagramBatch(3, 10);
            batch.TryAdd(new byte[1], Server.LocalAddress);
            batch.TryAdd(new byte[2], new SocketAddr(Loopback, 0));
            batch.TryAdd(new byte[3], Server.LocalAddress);
            Assert.AreEqual(1, Client.SendBatch(batch));
            Assert.Throws<SocketException>(() => Client.SendBatch(batch, 1));
            Assert.AreEqual(1, Client.SendBatch(batch, 2));
            Assert.AreEqual(2, Server.ReceiveBatch(batch));
            Assert.AreEqual(3, batch[1].Length);
        }

        [Test]
        public void neither_an_error_nor_the_datagrams_before_it_are_lost()
        {
            Client.TrySend(new byte[1], Server.LocalAddress);
            using DatagramBatch batch = new DatagramBatch(3, 10);
            foreach (bool single in new[] { false, true })
            {
                FailsAtSecond socket = new FailsAtSecond(Server.Socket);
                Assert.AreEqual(1, socket.ReceiveBatch(batch));
                TestDelegate next = () => socket.ReceiveBatch(batch);
                AssertFails(SocketError.NetworkDown, single ? () => socket.TryReceive(new byte[10], out _) : next);
                Assert.AreEqual(3, socket.ReceiveBatch(batch), "it is thrown once");
            }
        }

        [Test]
        public void one_batch_receives_and_sends_by_turns()
        {
            using DatagramBatch outgoing = new DatagramBatch(8, 40);
            using DatagramBatch both = new DatagramBatch(8, 20);
            for (int round = 1; round <= 6; round++)
            {
                // All have the same length, so that they go back as one message. Every third one is too long for
                // the batch.
                int length = round % 3 == 0 ? 21 : round;
                outgoing.Clear();
                for (int i = 0; i < 8; i++)
                {
                    outgoing.Add(length, Server.LocalAddress).Fill((byte)(round * 10 + i));
                }

                Assert.AreEqual(8, Client.SendBatch(outgoing));
                for (int i = 0; i < 8; i += both.Count)
                {
                    Assert.Greater(Server.ReceiveBatch(both), 0);
                }

                Assert.AreEqual(8, both.Count);
                for (int i = 0; i < 8; i++)
                {
                    Assert.AreEqual(length == 21, both.IsTruncated(i));
                    Assert.AreEqual(Math.Min(length, 20), both[i].Length);
                    Assert.AreEqual((byte)(round * 10 + i), both[i][both[i].Length - 1]);
                    Assert.AreEqual(Client.LocalAddress, both.AddressOf(i));
                }

                Assert.AreEqual(8, Server.SendBatch(both));
                outgoing.Clear();
                Assert.AreEqual(8, Client.ReceiveBatch(outgoing));
                Assert.AreEqual((byte)(round * 10 + 7), outgoing[7][0]);
            }
        }

        [Test]
        public void a_batch_is_received_straight_into_an_allocator_s_items()
        {
            using UnmanagedAllocator<Packet> slots = new UnmanagedAllocator<Packet>(100, zeroed: false);
            using SlotBatch<Packet> batch = new SlotBatch<Packet>(slots, 8);
            List<Ptr<Packet>> packets = new List<Ptr<Packet>>();
            for (int i = 0; i < 20; i++)
            {
                Client.TrySend(new byte[] { (byte)i, 0, 0, 0, (byte)i, 1, 0, 0 }, Server.LocalAddress);
            }

            int count;
            while ((count = Server.ReceiveBatch(batch)) > 0)
            {
                for (int i = 0; i < count; i++)
                {
                    packets.Add(batch.Slot(i));
                }
            }

            Assert.AreEqual(20, packets.Count);
            Assert.AreEqual(20, slots.Statistics.LiveItems, "the places that nothing came for were taken back");
            for (int i = 0; i < 20; i++)
            {
                Assert.AreEqual(i, packets[i].Value.Kind);
                Assert.AreEqual(256 + i, packets[i].Value.Sequence);
            }

            Assert.Throws<InvalidOperationException>(() => batch.TryAdd(new byte[1], Server.LocalAddress));
        }

        [TestCase(51)]
        [TestCase(52)]
        public void fuzz_random_datagrams_and_sizes_arrive_as_a_model_says(int seed)
        {
            Random random = new Random(seed);
            byte[] buffer = new byte[3000];
            for (int round = 0; round < 60; round++)
            {
                using DatagramBatch outgoing = new DatagramBatch(random.Next(1, 40), 2000);
                using DatagramBatch incoming = new DatagramBatch(random.Next(1, 40), random.Next(1, 2000));
                List<byte[]> expected = new List<byte[]>();
                int count = random.Next(0, 60);
                while (expected.Count < count)
                {
                    byte[] datagram = new byte[random.Next(3) == 0 ? random.Next(4) : random.Next(2000)];
                    random.NextBytes(datagram);
                    expected.Add(datagram);
                    if (random.Next(2) == 0 || !outgoing.TryAdd(datagram, Server.LocalAddress))
                    {
                        // Sends the batch first, because the model compares the order.
                        Assert.AreEqual(outgoing.Count, Client.SendBatch(outgoing));
                        outgoing.Clear();
                        Assert.IsTrue(Client.TrySend(datagram, Server.LocalAddress));
                    }
                }

                Client.SendBatch(outgoing);
                foreach (byte[] datagram in Drain(random, incoming, buffer))
                {
                    Assert.That(expected.Count, Is.GreaterThan(0), "nothing came that was not sent");
                    Assert.AreEqual(
                        expected[0].AsSpan(0, Math.Min(expected[0].Length, datagram.Length)).ToArray(), datagram);
                    expected.RemoveAt(0);
                }

                Assert.AreEqual(0, expected.Count, "everything that was sent came");
            }
        }

        /// <summary>Receives everything, randomly by batches or one by one. Each datagram is as long as it
        /// fitted.</summary>
        private List<byte[]> Drain(Random random, DatagramBatch incoming, byte[] buffer)
        {
            List<byte[]> all = new List<byte[]>();
            while (true)
            {
                if (random.Next(2) == 0)
                {
                    int count = Server.ReceiveBatch(incoming);
                    for (int i = 0; i < count; i++)
                    {
                        Assert.AreEqual(Client.LocalAddress, incoming.AddressOf(i));
                        all.Add(incoming[i].ToArray());
                    }

                    if (count == 0)
                    {
                        return all;
                    }
                }
                else if (Server.TryReceive(buffer.AsSpan(0, 3000), out Received received))
                {
                    Assert.IsFalse(received.IsTruncated);
                    all.Add(buffer.AsSpan(0, received.Length).ToArray());
                }
                else
                {
                    return all;
                }
            }
        }

        /// <summary>A back end that reads nothing from its socket, and whose second receive fails.</summary>
        private sealed class FailsAtSecond : ManagedUdp
        {
            private int calls;

            internal FailsAtSecond(Socket socket)
                : base(socket)
            {
            }

            private protected override int Receive(byte[] buffer, out SocketAddr from)
            {
                from = default;
                return calls++ == 1 ? throw new SocketException((int)SocketError.NetworkDown) : 0;
            }

            private protected override void Send(byte[] buffer, int length, in SocketAddr to)
            {
            }
        }
    }
}
