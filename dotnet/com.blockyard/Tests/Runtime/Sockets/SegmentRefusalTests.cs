using System;
using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>If the kernel refuses to cut a message (UDP_SEGMENT), its datagrams are sent one by one.</summary>
    /// <remarks>
    /// Linux cuts no message of a socket without checksums, but sends its datagrams. run-tests covers the other
    /// refusal, datagrams longer than the packets on the way, in a separate network namespace.
    /// </remarks>
    [TestFixture("127.0.0.1")]
    [TestFixture("::1")]
    public unsafe class SegmentRefusalTests
    {
        private const int Length = 100;

        private readonly IPAddress loopback;
        private UdpSocket? receiver;
        private Socket? socket;
        private LinuxUdp? sender;

        public SegmentRefusalTests(string address)
        {
            loopback = IPAddress.Parse(address);
        }

        [SetUp]
        public void Open()
        {
            if (!LinuxUdp.IsAvailable)
            {
                Assert.Ignore("this runtime has no back end LinuxNative");
            }

            receiver = UdpSocket.Bind(new IPEndPoint(loopback, 0));
            socket = new Socket(loopback.AddressFamily, SocketType.Dgram, ProtocolType.Udp);
            socket.Bind(new IPEndPoint(loopback, 0));
            sender = new LinuxUdp(socket);
            if (sender.LongestSegment == 0)
            {
                Assert.Ignore("this runtime has a kernel that cuts no messages");
            }
        }

        [TearDown]
        public void Close()
        {
            receiver?.Dispose();
            socket?.Dispose();
        }

        [Test]
        public void datagrams_of_a_refused_message_arrive_one_by_one_and_in_order()
        {
            TurnChecksumsOff();
            using DatagramBatch outgoing = new DatagramBatch(20, Length);
            using DatagramBatch incoming = new DatagramBatch(20, Length);
            for (int i = 0; i < 20; i++)
            {
                outgoing.Add(i < 10 ? Length : Length / 2, receiver!.LocalAddress).Fill((byte)i);
            }

            for (int round = 0; round < 3; round++)
            {
                Assert.AreEqual(20, sender!.SendBatch(outgoing, 0), "round " + round);
                Assert.AreEqual(20, receiver!.ReceiveBatch(incoming), "round " + round);
                for (int i = 0; i < 20; i++)
                {
                    Assert.AreEqual(i < 10 ? Length : Length / 2, incoming[i].Length);
                    Assert.AreEqual((byte)i, incoming[i][0]);
                }
            }
        }

        [Test]
        public void after_a_refusal_datagrams_as_long_are_not_tried_again()
        {
            TurnChecksumsOff();
            using DatagramBatch outgoing = new DatagramBatch(2, Length);
            outgoing.Add(Length, receiver!.LocalAddress);
            outgoing.Add(Length, receiver.LocalAddress);
            Assert.AreEqual(2, sender!.SendBatch(outgoing, 0));
            Assert.AreEqual(Length - 1, sender.LongestSegment);
            Assert.AreEqual(2, sender.SendBatch(outgoing, 0));
            Assert.AreEqual(Length - 1, sender.LongestSegment);
        }

        [Test]
        public void an_address_that_nothing_can_be_sent_to_does_not_count_as_a_refusal()
        {
            int before = sender!.LongestSegment;
            using DatagramBatch outgoing = new DatagramBatch(4, Length);
            outgoing.Add(Length, receiver!.LocalAddress);
            SocketAddr nowhere = new SocketAddr(loopback, 0);
            outgoing.Add(Length, nowhere);
            outgoing.Add(Length, nowhere);
            Assert.AreEqual(1, sender.SendBatch(outgoing, 0), "what was sent is reported first");
            Assert.AreEqual(before, sender.LongestSegment);
            Assert.Throws<SocketException>(() => sender.SendBatch(outgoing, 1));
            Assert.AreEqual(before, sender.LongestSegment);
        }

        private void TurnChecksumsOff()
        {
            const int LevelSocket = 1;
            const int NoCheck = 11;
            const int NoCheck6Send = 101;
            const int NoCheck6Receive = 102;
            int on = 1;
            if (loopback.AddressFamily == AddressFamily.InterNetwork)
            {
                Assert.AreEqual(0, setsockopt((int)socket!.Handle, LevelSocket, NoCheck, &on, sizeof(int)));
                return;
            }

            Assert.AreEqual(0, setsockopt((int)socket!.Handle, LinuxNative.LevelUdp, NoCheck6Send, &on, sizeof(int)));
            Assert.AreEqual(
                0, setsockopt((int)receiver!.Socket.Handle, LinuxNative.LevelUdp, NoCheck6Receive, &on, sizeof(int)));
        }

        [DllImport("libc")]
        private static extern int setsockopt(int descriptor, int level, int option, void* value, uint length);
    }
}
