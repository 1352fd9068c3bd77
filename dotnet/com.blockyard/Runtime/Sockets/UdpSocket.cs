using System;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Blockyard.Memory;

namespace Blockyard.Sockets
{
    /// <summary>A UDP socket for game servers: nothing on the collected heap for a packet, no exception for "nothing to read".</summary>
    /// <remarks>
    /// <para>By which means it talks to the system is chosen when it is made and shown by <see cref="Backend"/>. In the steady
    /// state <see cref="TryReceive(Span{byte}, out Received)"/>, <see cref="TrySend"/> and both batches allocate 0 bytes on
    /// <see cref="UdpBackend.LinuxNative"/> and <see cref="UdpBackend.SocketAddress"/>; batches are one system call on the
    /// first.</para>
    /// <para>Any thread may call anything at any time. <see cref="Dispose"/> ends blocked receives with an
    /// <see cref="ObjectDisposedException"/>, and the descriptor is closed only when no call is under way. Errors of the
    /// system are <see cref="SocketException"/>s, save one: that an earlier datagram was refused by its host is no error of
    /// this call.</para>
    /// </remarks>
    public sealed class UdpSocket : IDisposable
    {
        private readonly Socket socket;
        private readonly UdpTransport transport;
        private readonly LinuxUdp? linux;
        private readonly DescriptorGuard guard;

        /// <summary>Takes a UDP socket over.</summary>
        /// <param name="socket">A datagram socket, IPv4 or IPv6; bound, if it is to receive.</param>
        /// <param name="backend">By which means.</param>
        /// <param name="ownsSocket">Whether <see cref="Dispose"/> closes it.</param>
        /// <exception cref="PlatformNotSupportedException">The back end is not available here.</exception>
        /// <exception cref="ArgumentException">Not a UDP socket.</exception>
        public UdpSocket(Socket socket, UdpBackend backend = UdpBackend.Automatic, bool ownsSocket = true)
        {
            if (socket == null)
            {
                throw new ArgumentNullException(nameof(socket));
            }

            if (socket.SocketType != SocketType.Dgram
                || (socket.AddressFamily != AddressFamily.InterNetwork && socket.AddressFamily != AddressFamily.InterNetworkV6))
            {
                throw new ArgumentException("A UdpSocket is made of an IPv4 or IPv6 datagram socket.", nameof(socket));
            }

            Backend = backend == UdpBackend.Automatic ? Best() : backend;
            if (!IsAvailable(Backend))
            {
                throw new PlatformNotSupportedException("The UDP back end " + backend + " is not available here.");
            }

            this.socket = socket;
            transport = Open(socket, Backend);
            linux = transport as LinuxUdp;
            guard = new DescriptorGuard(ownsSocket ? new Action(socket.Dispose) : Nothing);
        }

        /// <summary>By which means it talks to the system.</summary>
        public UdpBackend Backend { get; }

        /// <summary>The socket itself, for its options.</summary>
        public Socket Socket => socket;

        /// <summary>Whether <see cref="Dispose"/> was called.</summary>
        public bool IsDisposed => guard.IsClosed;

        /// <summary>The address that it is bound to.</summary>
        public SocketAddr LocalAddress => socket.LocalEndPoint is IPEndPoint local ? new SocketAddr(local) : default;

        /// <summary>Whether datagrams may be sent to broadcast addresses; off at first.</summary>
        public bool EnableBroadcast
        {
            get => socket.EnableBroadcast;
            set => socket.EnableBroadcast = value;
        }

        /// <summary>Whether a back end can be had on this system and runtime.</summary>
        /// <param name="backend">Any but <see cref="UdpBackend.Automatic"/>, which always can.</param>
        public static bool IsAvailable(UdpBackend backend)
        {
            switch (backend)
            {
                case UdpBackend.Automatic:
                case UdpBackend.EndPointNonAlloc:
                case UdpBackend.Plain:
                    return true;
                case UdpBackend.LinuxNative:
                    return LinuxUdp.IsAvailable;
                case UdpBackend.SocketAddress:
#if NET8_0_OR_GREATER
                    return true;
#else
                    return false;
#endif
                default:
                    return false;
            }
        }

        /// <summary>A socket bound to an address that it shares with no other; port 0 is any free one.</summary>
        /// <param name="local">The address.</param>
        /// <param name="backend">By which means.</param>
        /// <exception cref="SocketException">The address can't be bound.</exception>
        public static UdpSocket Bind(IPEndPoint local, UdpBackend backend = UdpBackend.Automatic)
        {
            if (local == null)
            {
                throw new ArgumentNullException(nameof(local));
            }

            return Bind(new Socket(local.AddressFamily, SocketType.Dgram, ProtocolType.Udp), local, backend);
        }

        /// <summary>A socket for IPv6 and IPv4 at once, on all interfaces; IPv4 peers appear as mapped IPv6 addresses.</summary>
        /// <param name="port">The port; 0 is any free one.</param>
        /// <param name="backend">By which means.</param>
        /// <exception cref="SocketException">The port can't be bound.</exception>
        public static UdpSocket BindDualMode(int port, UdpBackend backend = UdpBackend.Automatic)
        {
            Socket socket = new Socket(AddressFamily.InterNetworkV6, SocketType.Dgram, ProtocolType.Udp);
            try
            {
                socket.DualMode = true;
            }
            catch
            {
                socket.Dispose();
                throw;
            }

            return Bind(socket, new IPEndPoint(IPAddress.IPv6Any, port), backend);
        }

        /// <summary>Receives a datagram if one is there. Never blocks.</summary>
        /// <param name="buffer">Where it goes; what does not fit is lost, and <see cref="Received.IsTruncated"/> says so.</param>
        /// <param name="received">Its length and sender.</param>
        /// <returns>False when there is nothing to read.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public bool TryReceive(Span<byte> buffer, out Received received)
        {
            guard.Enter();
            try
            {
                return linux != null ? linux.TryReceive(buffer, out received) : transport.TryReceive(buffer, out received);
            }
            catch (SocketException) when (guard.IsClosed)
            {
                throw Closed();
            }
            finally
            {
                guard.Leave();
            }
        }

        /// <summary>Receives a datagram, if one is there, straight into an allocator's item.</summary>
        /// <param name="allocator">Whose item; nothing is taken from it when there is nothing to read.</param>
        /// <param name="slot">The item.</param>
        /// <param name="received">The datagram's length and sender.</param>
        /// <typeparam name="T">The packet; longer datagrams are truncated.</typeparam>
        /// <returns>False when there is nothing to read.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public unsafe bool TryReceive<T>(UnmanagedAllocator<T> allocator, out Ptr<T> slot, out Received received)
            where T : unmanaged
        {
            slot = allocator.AllocatePtr();
            bool got = false;
            try
            {
                got = TryReceive(new Span<byte>(slot.Address, sizeof(T)), out received);
            }
            finally
            {
                if (!got)
                {
                    allocator.TryTakeBack(slot);
                    slot = default;
                }
            }

            return got;
        }

        /// <summary>Waits for a datagram and receives it.</summary>
        /// <param name="buffer">Where it goes, as for <see cref="TryReceive(Span{byte}, out Received)"/>.</param>
        /// <param name="milliseconds">The longest wait; -1 is for ever.</param>
        /// <param name="received">Its length and sender.</param>
        /// <returns>False when the time was over.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>, or when it comes meanwhile.</exception>
        public bool Receive(Span<byte> buffer, int milliseconds, out Received received)
        {
            if (milliseconds < -1)
            {
                throw new ArgumentOutOfRangeException(nameof(milliseconds), milliseconds, "A time of -1 or more.");
            }

            guard.Enter();
            try
            {
                long start = Stopwatch.GetTimestamp();
                while (!transport.TryReceive(buffer, out received))
                {
                    long waited = (Stopwatch.GetTimestamp() - start) * 1000 / Stopwatch.Frequency;
                    if (milliseconds >= 0 && waited >= milliseconds)
                    {
                        ThrowIfClosed();
                        return false;
                    }

                    transport.Wait(milliseconds < 0 ? -1 : (int)(milliseconds - waited));
                    ThrowIfClosed();
                }

                return true;
            }
            catch (SocketException) when (guard.IsClosed)
            {
                throw Closed();
            }
            finally
            {
                guard.Leave();
            }
        }

        /// <summary>Sends a datagram if the system has room for it. Never blocks.</summary>
        /// <param name="datagram">Its bytes; may be none.</param>
        /// <param name="to">To whom; an IPv4 address will do on a dual-mode socket.</param>
        /// <returns>False when the system has no room: try again later, or drop it.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        /// <exception cref="SocketException">Too long, an address of another family, or the system's own.</exception>
        public bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to)
        {
            guard.Enter();
            try
            {
                return linux != null ? linux.TrySend(datagram, to) : transport.TrySend(datagram, to);
            }
            catch (SocketException) when (guard.IsClosed)
            {
                throw Closed();
            }
            finally
            {
                guard.Leave();
            }
        }

        /// <summary>Receives as many datagrams as are there and fit the batch. Never blocks.</summary>
        /// <param name="batch">Becomes those datagrams.</param>
        /// <returns>How many; 0 when there is nothing to read.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public int ReceiveBatch(DatagramBatch batch)
        {
            guard.Enter();
            try
            {
                batch.BeginReceive();
                int count = 0;
                try
                {
                    count = transport.ReceiveBatch(batch);
                }
                finally
                {
                    batch.EndReceive(count);
                }

                return count;
            }
            catch (SocketException) when (guard.IsClosed)
            {
                throw Closed();
            }
            finally
            {
                guard.Leave();
            }
        }

        /// <summary>Sends a batch's datagrams in order, until one finds no room. Never blocks; the batch stays as it is.</summary>
        /// <remarks>
        /// Several in a row to one address that are equally long, save a shorter last one, cost the least: on
        /// <see cref="UdpBackend.LinuxNative"/> they go to the kernel as one message, which it cuts apart again (UDP_SEGMENT,
        /// where the kernel and the way there allow it). Each arrives as a datagram of its own.
        /// </remarks>
        /// <param name="batch">The datagrams.</param>
        /// <param name="first">The first to send: what an earlier call answered, to go on after it.</param>
        /// <returns>How many were sent. An error after some were sent comes with the next call.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        /// <exception cref="SocketException">As for <see cref="TrySend"/>.</exception>
        public int SendBatch(DatagramBatch batch, int first = 0)
        {
            if (first < 0 || first > batch.Count)
            {
                throw new ArgumentOutOfRangeException(nameof(first), first, "The batch has " + batch.Count + " datagrams.");
            }

            guard.Enter();
            try
            {
                batch.ThrowIfDisposed();
                return transport.SendBatch(batch, first);
            }
            catch (SocketException) when (guard.IsClosed)
            {
                throw Closed();
            }
            finally
            {
                guard.Leave();
            }
        }

        /// <summary>Closes it, waking who waits. A second call does nothing. Returns at once; the last call under way closes.</summary>
        public void Dispose() => guard.Close(transport.Wake);

        private static UdpBackend Best() => IsAvailable(UdpBackend.LinuxNative) ? UdpBackend.LinuxNative
            : IsAvailable(UdpBackend.SocketAddress) ? UdpBackend.SocketAddress
            : UdpBackend.EndPointNonAlloc;

        private static UdpTransport Open(Socket socket, UdpBackend backend)
        {
            switch (backend)
            {
                case UdpBackend.LinuxNative:
                    return new LinuxUdp(socket);
#if NET8_0_OR_GREATER
                case UdpBackend.SocketAddress:
                    return new SocketAddressUdp(socket);
#endif
                case UdpBackend.EndPointNonAlloc:
                    return new EndPointUdp(socket);
                default:
                    return new PlainUdp(socket);
            }
        }

        private static UdpSocket Bind(Socket socket, IPEndPoint local, UdpBackend backend)
        {
            try
            {
                // Mono lets UDP sockets share addresses unless told otherwise, and the kernel then hands out a free port twice.
                socket.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.ReuseAddress, false);
                socket.Bind(local);
                return new UdpSocket(socket, backend);
            }
            catch
            {
                socket.Dispose();
                throw;
            }
        }

        private static ObjectDisposedException Closed() => new ObjectDisposedException(nameof(UdpSocket));

        private static void Nothing()
        {
        }

        private void ThrowIfClosed()
        {
            if (guard.IsClosed)
            {
                throw Closed();
            }
        }
    }
}
