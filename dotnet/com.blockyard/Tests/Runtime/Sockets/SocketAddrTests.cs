using System;
using System.Collections.Generic;
using System.Net;
using System.Net.Sockets;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    [TestFixture]
    public unsafe class SocketAddrTests
    {
        [Test]
        public void it_takes_32_bytes_and_holds_no_reference()
        {
            Assert.AreEqual(32, sizeof(SocketAddr));
        }

        [TestCase("127.0.0.1", 80)]
        [TestCase("255.255.255.255", 65535)]
        [TestCase("0.0.0.0", 0)]
        [TestCase("::1", 1)]
        [TestCase("fe80::1234:5678%7", 7777)]
        [TestCase("2001:db8:1:2:3:4:5:6", 443)]
        [TestCase("::ffff:10.1.2.3", 9)]
        public void end_points_and_serialized_addresses_come_back_as_they_were(string address, int port)
        {
            IPEndPoint endPoint = new IPEndPoint(IPAddress.Parse(address), port);
            SocketAddr addr = new SocketAddr(endPoint);
            Assert.AreEqual(endPoint.AddressFamily, addr.Family);
            Assert.AreEqual(port, addr.Port);
            Assert.AreEqual(endPoint, addr.ToIPEndPoint());
            Assert.AreEqual(endPoint.ToString(), addr.ToString());
            Assert.AreEqual(addr, SocketAddr.From(endPoint.Serialize()));
            Assert.AreEqual(addr.GetHashCode(), SocketAddr.From(endPoint.Serialize()).GetHashCode());
        }

        [Test]
        public void each_part_tells_addresses_apart()
        {
            SocketAddr[] all =
            {
                default,
                new SocketAddr(IPAddress.Parse("10.0.0.1"), 1),
                new SocketAddr(IPAddress.Parse("10.0.0.1"), 2),
                new SocketAddr(IPAddress.Parse("10.0.0.2"), 1),
                new SocketAddr(IPAddress.Parse("::ffff:10.0.0.1"), 1),
                new SocketAddr(IPAddress.Parse("fe80::1%1"), 1),
                new SocketAddr(IPAddress.Parse("fe80::1%2"), 1),
                new SocketAddr(IPAddress.Parse("fe80::2%1"), 1),
                new SocketAddr(IPAddress.Parse("fe81::1%1"), 1),
            };
            for (int i = 0; i < all.Length; i++)
            {
                for (int j = 0; j < all.Length; j++)
                {
                    Assert.AreEqual(i == j, all[i] == all[j], all[i] + " and " + all[j]);
                    Assert.AreEqual(i == j, all[i].Equals((object)all[j]));
                }
            }
        }

        [Test]
        public void mapping_to_IPv6_and_back_keeps_address_and_port()
        {
            SocketAddr four = new SocketAddr(IPAddress.Parse("192.168.7.9"), 123);
            SocketAddr six = four.MapToIPv6();
            Assert.AreEqual(new SocketAddr(IPAddress.Parse("::ffff:192.168.7.9"), 123), six);
            Assert.IsTrue(six.IsIPv4MappedToIPv6);
            Assert.IsFalse(four.IsIPv4MappedToIPv6);
            Assert.AreEqual(four, six.MapToIPv4());
            Assert.AreEqual(six, six.MapToIPv6());
            SocketAddr native = new SocketAddr(IPAddress.IPv6Loopback, 5);
            Assert.AreEqual(native, native.MapToIPv4());
        }

        [Test]
        public void trap_7_peers_whose_end_points_collide_are_told_apart()
        {
            // An IPEndPoint's hash has 32 bits, and some runtimes use fewer. Find two end points with the same hash.
            Dictionary<int, IPEndPoint> byHash = new Dictionary<int, IPEndPoint>();
            IPEndPoint? one = null;
            IPEndPoint? other = null;
            for (int i = 0; i < 2000000 && other == null; i++)
            {
                byte[] address = { 10, (byte)(i >> 14), (byte)(i >> 7), (byte)(i & 127) };
                IPEndPoint candidate = new IPEndPoint(new IPAddress(address), 1000 + (i & 127));
                int hash = candidate.GetHashCode();
                if (byHash.TryGetValue(hash, out one) && !one.Equals(candidate))
                {
                    other = candidate;
                }

                byHash[hash] = candidate;
            }

            Assert.IsNotNull(other, "two end points with one hash exist among so many");
            ClientTable<string> table = new ClientTable<string>();
            table.TryAdd(new SocketAddr(one!), "one");
            table.TryAdd(new SocketAddr(other!), "other");
            Assert.AreEqual("one", table[new SocketAddr(one!)]);
            Assert.AreEqual("other", table[new SocketAddr(other!)]);
        }

        [Test]
        public void the_hashes_of_neighbours_are_spread()
        {
            // The clients of a server have few addresses and many ports. A random 32-bit hash has about 1 collision
            // here.
            HashSet<int> hashes = new HashSet<int>();
            int[] buckets = new int[1024];
            for (int host = 0; host < 16; host++)
            {
                for (int port = 1024; port < 1024 + 6400; port++)
                {
                    IPAddress address = new IPAddress(new byte[] { 192, 168, 0, (byte)host });
                    int hash = new SocketAddr(address, port).GetHashCode();
                    hashes.Add(hash);
                    buckets[hash & 1023]++;
                }
            }

            Assert.That(hashes.Count, Is.GreaterThan((16 * 6400) - 20));
            Array.Sort(buckets);
            Assert.That(buckets[1023], Is.LessThan(200), "100 a bucket is even");
            Assert.That(buckets[0], Is.GreaterThan(40));
        }

        [Test]
        public void what_is_no_address_is_refused()
        {
            Assert.Throws<ArgumentNullException>(() => new SocketAddr((IPEndPoint)null!));
            Assert.Throws<ArgumentNullException>(() => new SocketAddr(null!, 1));
            Assert.Throws<ArgumentNullException>(() => SocketAddr.From(null!));
            Assert.Throws<ArgumentOutOfRangeException>(() => new SocketAddr(IPAddress.Loopback, 65536));
            Assert.Throws<ArgumentOutOfRangeException>(() => new SocketAddr(IPAddress.Loopback, -1));
            Assert.Throws<ArgumentException>(() => SocketAddr.From(new SocketAddress(AddressFamily.Unix, 32)));
            Assert.Throws<ArgumentException>(
                () => SocketAddr.From(new SocketAddress(AddressFamily.InterNetworkV6, 16)));
            Assert.Throws<InvalidOperationException>(() => default(SocketAddr).ToIPEndPoint());
            Assert.AreEqual("none", default(SocketAddr).ToString());
        }

        [TestCase(31)]
        [TestCase(32)]
        public void fuzz_whatever_the_kernel_might_write_is_an_address_or_none(int seed)
        {
            Random random = new Random(seed);
            byte[] raw = new byte[LinuxSockaddr.Room];
            int read = 0;
            for (int i = 0; i < 100000; i++)
            {
                random.NextBytes(raw);
                if (random.Next(4) != 0)
                {
                    raw[0] = random.Next(2) == 0 ? (byte)2 : (byte)10;
                    raw[1] = 0;
                }

                uint length = (uint)random.Next(0, 33);
                fixed (byte* pinned = raw)
                {
                    SocketAddr addr = LinuxSockaddr.Read(pinned, length);
                    if (addr.IsNone)
                    {
                        continue;
                    }

                    // Writing what was read gives the same bytes, and the runtime's classes agree.
                    read++;
                    byte* back = stackalloc byte[LinuxSockaddr.Room];
                    bool six = addr.Family == AddressFamily.InterNetworkV6;
                    uint written = LinuxSockaddr.Write(addr, back, six);
                    Assert.AreEqual(six ? 28 : 16, written);
                    for (int b = 0; b < (six ? 28 : 8); b++)
                    {
                        Assert.AreEqual(raw[b], back[b]);
                    }

                    Assert.AreEqual(addr, new SocketAddr(addr.ToIPEndPoint()));
                    if (!six)
                    {
                        Assert.AreEqual(28, LinuxSockaddr.Write(addr, back, socketIsIPv6: true));
                        Assert.AreEqual(addr, LinuxSockaddr.Read(back, 28).MapToIPv4());
                    }
                }
            }

            Assert.That(read, Is.GreaterThan(10000));
        }

        [Test]
        public void trap_3_the_kernel_s_10_is_the_runtime_s_23()
        {
            byte* kernel = stackalloc byte[LinuxSockaddr.Room];
            LinuxSockaddr.Write(new SocketAddr(IPAddress.IPv6Loopback, 5), kernel, socketIsIPv6: true);
            Assert.AreEqual(10, kernel[0] | (kernel[1] << 8));
            Assert.AreEqual(AddressFamily.InterNetworkV6, LinuxSockaddr.Read(kernel, 28).Family);
            Assert.AreEqual(23, (int)AddressFamily.InterNetworkV6);
        }
    }
}
