using System;
using System.Net;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>A new server and client on loopback for every test, with one back end.</summary>
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
            || (backend == UdpBackend.EndPointNonAlloc && !Runtime.IsMono);

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
    }
}
