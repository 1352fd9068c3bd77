using System;
using System.Collections.Generic;
using System.Net;
using System.Threading;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Collections and closing during calls, on each back end, on IPv4 and IPv6.</summary>
    public class UdpThreadingTests : UdpFixture
    {
        public UdpThreadingTests(string backend, string address)
            : base(backend, address)
        {
        }

        [Test]
        public void closing_ends_a_blocked_receive()
        {
            FreshThread thread = new FreshThread(() => Server.Receive(new byte[10], -1, out _));
            Thread.Sleep(30);
            Server.Dispose();
            Server.Dispose();
            thread.Join();
            Assert.IsInstanceOf<ObjectDisposedException>(thread.Failure);
            Assert.IsTrue(Server.IsDisposed);
        }

        [Test]
        public void traps_4_and_5_a_blocked_receive_neither_hangs_nor_is_disturbed_by_collections()
        {
            SocketAddr from = default;
            FreshThread thread = new FreshThread(() =>
            {
                Server.Receive(new byte[10], -1, out Received received);
                from = received.From;
            });
            Thread.Sleep(20);
            for (int i = 0; i < 50; i++)
            {
                GC.Collect();
                Thread.Sleep(1);
            }

            Assert.IsTrue(thread.IsAlive, "still waiting: " + thread.Failure);
            Client.TrySend(new byte[1], Server.LocalAddress);
            thread.JoinWithoutFailure();
            Assert.AreEqual(Client.LocalAddress, from);
        }

        [Test]
        public void stress_trap_5_collections_and_calls_that_never_block_do_not_hold_one_another_up()
        {
            // With function pointers the collector waits for each call. A call that blocked would stop all threads.
            bool stop = false;
            FreshThread[] threads = new FreshThread[4];
            for (int t = 0; t < threads.Length; t++)
            {
                int role = t;
                threads[t] = new FreshThread(() => ReceiveAndSend(role, ref stop));
            }

            for (int i = 0; i < 100; i++)
            {
                GC.Collect();
                Thread.Yield();
            }

            Volatile.Write(ref stop, true);
            foreach (FreshThread thread in threads)
            {
                thread.JoinWithoutFailure();
            }
        }

        [Test]
        public void stress_trap_6_closing_under_many_threads_and_collections_harms_nobody()
        {
            // If a descriptor were closed during a call, it could belong to the next socket, and a bystander would get
            // the datagram.
            for (int round = 0; round < 15; round++)
            {
                using UdpSocket shared = UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend);
                SocketAddr to = shared.LocalAddress;
                FreshThread[] threads = new FreshThread[6];
                for (int t = 0; t < threads.Length; t++)
                {
                    int role = t;
                    threads[t] = new FreshThread(() => Hammer(shared, to, role));
                }

                Thread.Sleep(round % 5);
                GC.Collect();
                shared.Dispose();
                List<UdpSocket> bystanders = new List<UdpSocket>();
                for (int i = 0; i < 10; i++)
                {
                    bystanders.Add(UdpSocket.Bind(new IPEndPoint(Loopback, 0), Backend));
                }

                foreach (FreshThread thread in threads)
                {
                    thread.Join();
                    Assert.IsInstanceOf<ObjectDisposedException>(thread.Failure, "the only way to end the loop");
                }

                foreach (UdpSocket bystander in bystanders)
                {
                    bool received = bystander.TryReceive(new byte[10], out Received stray);
                    Assert.IsFalse(received && stray.From != to, "a stray datagram");
                    bystander.Dispose();
                }
            }
        }

        /// <summary>Makes garbage on purpose, so that collections also start on this thread.</summary>
        private void ReceiveAndSend(int role, ref bool stop)
        {
            using DatagramBatch outgoing = new DatagramBatch(100, 64);
            using DatagramBatch incoming = new DatagramBatch(100, 64);
            for (int i = 0; !Volatile.Read(ref stop); i++)
            {
                byte[] bytes = new byte[64];
                bytes[0] = (byte)i;
                switch (role)
                {
                    case 0:
                        Client.TrySend(bytes, Server.LocalAddress);
                        break;
                    case 1:
                        Server.TryReceive(bytes, out _);
                        break;
                    case 2:
                        outgoing.Clear();
                        while (outgoing.TryAdd(bytes, Server.LocalAddress))
                        {
                        }

                        Client.SendBatch(outgoing);
                        break;
                    default:
                        Server.ReceiveBatch(incoming);
                        break;
                }
            }
        }

        private static void Hammer(UdpSocket shared, SocketAddr to, int role)
        {
            byte[] buffer = new byte[100];
            using DatagramBatch batch = new DatagramBatch(8, 100);
            batch.TryAdd(buffer, to);
            while (true)
            {
                switch (role)
                {
                    case 0:
                        shared.Receive(buffer, -1, out _);
                        break;
                    case 1:
                        shared.Receive(buffer, 1, out _);
                        break;
                    case 2:
                        shared.TrySend(buffer, to);
                        break;
                    case 3:
                        shared.SendBatch(batch);
                        break;
                    case 4:
                        using (DatagramBatch incoming = new DatagramBatch(8, 100))
                        {
                            shared.ReceiveBatch(incoming);
                        }

                        break;
                    default:
                        shared.TryReceive(buffer, out _);
                        break;
                }
            }
        }
    }
}
