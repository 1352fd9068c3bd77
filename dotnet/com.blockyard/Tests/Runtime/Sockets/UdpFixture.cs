using System;
using System.Net;
using System.Net.Sockets;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>A new server and client on loopback for every test. Every test runs on each back end of the runtime, on
    /// IPv4 and IPv6.</summary>
    [TestFixture("LinuxNative", "127.0.0.1")]
    [TestFixture("LinuxNative", "::1")]
    [TestFixture("SocketAddress", "127.0.0.1")]
    [TestFixture("SocketAddress", "::1")]
    [TestFixture("EndPointNonAlloc", "127.0.0.1")]
    [TestFixture("EndPointNonAlloc", "::1")]
    [TestFixture("Plain", "127.0.0.1")]
    [TestFixture("Plain", "::1")]
    public abstract class UdpFixture
    {
        private readonly UdpBackend backend;
        private readonly IPAddress loopback;
        private UdpSocket? server;
        private UdpSocket? client;

        protected UdpFixture(string backend, string address)
        {
            this.backend = (UdpBackend)Enum.Parse(typeof(UdpBackend), backend);
            loopback = IPAddress.Parse(address);
        }

        protected UdpBackend Backend => backend;

        protected IPAddress Loopback => loopback;

        protected UdpSocket Server => server!;

        protected UdpSocket Client => client!;

        protected bool IsFreeOfGarbage => backend == UdpBackend.LinuxNative || backend == UdpBackend.SocketAddress
            || (backend == UdpBackend.EndPointNonAlloc && !Runtime.IsMono && !Runtime.IsCore);

        [SetUp]
        public void Open()
        {
            if (!UdpSocket.IsAvailable(backend))
            {
                Assert.Ignore("this runtime has no back end " + backend);
            }

            server = UdpSocket.Bind(new IPEndPoint(loopback, 0), backend);
            client = UdpSocket.Bind(new IPEndPoint(loopback, 0), backend);
        }

        [TearDown]
        public void Close()
        {
            server?.Dispose();
            client?.Dispose();
        }

        protected static void AssertFails(SocketError error, TestDelegate call) =>
            Assert.AreEqual(error, Assert.Throws<SocketException>(call).SocketErrorCode);

#pragma warning disable CS0649 // the network assigns them
        protected struct Packet
        {
            public int Kind;
            public int Sequence;
        }
#pragma warning restore CS0649
    }
}
