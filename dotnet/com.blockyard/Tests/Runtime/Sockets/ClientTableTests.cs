using System;
using System.Collections.Generic;
using System.Net;
using Blockyard.Diagnostics;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    [TestFixture]
    public class ClientTableTests
    {
        [TestCase(41)]
        [TestCase(42)]
        public void it_agrees_with_a_dictionary(int seed)
        {
            Random random = new Random(seed);
            ClientTable<string> table = new ClientTable<string>(0);
            Dictionary<SocketAddr, string> model = new Dictionary<SocketAddr, string>();
            for (int step = 0; step < 30000; step++)
            {
                SocketAddr address = Address(random.Next(step < 15000 ? 40 : 3000));
                string value = step.ToString();
                switch (random.Next(5))
                {
                    case 0:
                    case 1:
                        Assert.AreEqual(model.Remove(address), table.Remove(address));
                        break;
                    case 2:
                        table[address] = value;
                        model[address] = value;
                        break;
                    case 3 when step % 500 == 0:
                        table.Clear();
                        model.Clear();
                        break;
                    default:
                        Assert.AreEqual(!model.ContainsKey(address), table.TryAdd(address, value));
                        if (!model.ContainsKey(address))
                        {
                            model.Add(address, value);
                        }

                        break;
                }

                Assert.AreEqual(model.Count, table.Count);
                Assert.AreEqual(
                    model.TryGetValue(address, out string? expected), table.TryGet(address, out string actual));
                Assert.AreEqual(expected, actual);
                if (step % 1000 == 0)
                {
                    int seen = 0;
                    foreach (KeyValuePair<SocketAddr, string> pair in table)
                    {
                        Assert.AreEqual(model[pair.Key], pair.Value);
                        seen++;
                    }

                    Assert.AreEqual(model.Count, seen);
                }
            }
        }

        [Test]
        public void looking_up_allocates_nothing()
        {
            ClientTable<object> table = new ClientTable<object>();
            SocketAddr[] clients = new SocketAddr[1000];
            for (int i = 0; i < clients.Length; i++)
            {
                clients[i] = Address(i);
                table.TryAdd(clients[i], new object());
            }

            SocketAddr stranger = Address(5000);
            int found = 0;
            AllocationAssert.Zero(() =>
            {
                for (int i = 0; i < clients.Length; i++)
                {
                    found += table.TryGet(clients[i], out _) ? 1 : 0;
                    found += table.TryGet(stranger, out _) ? 1 : 0;
                }

                foreach (KeyValuePair<SocketAddr, object> pair in table)
                {
                    found += pair.Value == null ? 1 : 0;
                }
            });
            Assert.AreEqual(2000, found);
        }

        [Test]
        public void a_table_that_changes_while_it_is_enumerated_is_caught()
        {
            ClientTable<int> table = new ClientTable<int>();
            table[Address(1)] = 1;
            foreach (KeyValuePair<SocketAddr, int> pair in table)
            {
                table[pair.Key] = pair.Value + 1;
            }

            Assert.AreEqual(2, table[Address(1)]);
            Action[] changes =
            {
                () => table.TryAdd(Address(2), 2), () => table.Remove(Address(2)), () => table.Clear(),
            };
            foreach (Action change in changes)
            {
                ClientTable<int>.Enumerator all = table.GetEnumerator();
                change();
                Assert.Throws<InvalidOperationException>(() => all.MoveNext());
            }
        }

        [Test]
        public void no_address_is_no_client()
        {
            ClientTable<int> table = new ClientTable<int>();
            Assert.IsFalse(table.TryGet(default, out _));
            Assert.IsFalse(table.Remove(default));
            Assert.Throws<ArgumentException>(() => table.TryAdd(default, 1));
            Assert.Throws<KeyNotFoundException>(() => _ = table[Address(1)]);
            Assert.Throws<ArgumentOutOfRangeException>(() => new ClientTable<int>(-1));
        }

        private static SocketAddr Address(int i) => i % 2 == 0
            ? new SocketAddr(new IPAddress(new byte[] { 10, 0, (byte)(i >> 8), (byte)i }), 7777)
            : new SocketAddr(IPAddress.IPv6Loopback, 1000 + i);
    }
}
