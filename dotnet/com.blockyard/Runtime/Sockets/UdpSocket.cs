using System;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using Blockyard.Memory;

namespace Blockyard.Sockets
{
    /// <summary>A UDP socket for game servers: no garbage for a packet, and no exception for "nothing to
    /// read".</summary>
    /// <remarks>
    /// <para><see cref="Backend"/> says how it calls the system; the constructor chooses that. In the steady state
    /// <see cref="TryReceive(Span{byte}, out Received)"/>, <see cref="TrySend"/> and both batch methods allocate
    /// nothing on <see cref="UdpBackend.LinuxNative"/> and <see cref="UdpBackend.SocketAddress"/>. On the first, a
    /// batch is one system call.</para>
    /// <para>Any thread may call any member at any time. <see cref="Dispose"/> ends blocked receives with an
    /// <see cref="ObjectDisposedException"/>. The descriptor is closed when no call uses it any more. Errors of the
    /// system are <see cref="SocketException"/>s, with one exception: that a host refused an earlier datagram is
    /// ignored.</para>
    /// </remarks>
    public sealed class UdpSocket : IDisposable
    {
        private readonly Socket socket;
        private readonly UdpTransport transport;
        private readonly LinuxUdp? linux;
        private readonly DescriptorGuard guard;

        /// <summary>Creates a UdpSocket from a socket.</summary>
        /// <param name="socket">An IPv4 or IPv6 datagram socket. It must be bound to receive.</param>
        /// <param name="backend">How to call the system.</param>
        /// <param name="ownsSocket">Whether <see cref="Dispose"/> closes it.</param>
        /// <exception cref="PlatformNotSupportedException">The back end is not available here.</exception>
        /// <exception cref="ArgumentException">Not a UDP socket.</exception>
        public UdpSocket(Socket socket, UdpBackend backend = UdpBackend.Automatic, bool ownsSocket = true)
        {
            if (socket == null)
            {
                throw new ArgumentNullException(nameof(socket));
            }

            bool isIP = socket.AddressFamily == AddressFamily.InterNetwork
                || socket.AddressFamily == AddressFamily.InterNetworkV6;
            if (socket.SocketType != SocketType.Dgram || !isIP)
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

        /// <summary>How it calls the system.</summary>
        public UdpBackend Backend { get; }

        /// <summary>The underlying socket, for its options. It must not be closed before this object: its descriptor
        /// may be another file's then. Only .NET 8 notices that.</summary>
        public Socket Socket => socket;

        /// <summary>Whether <see cref="Dispose"/> was called.</summary>
        public bool IsDisposed => guard.IsClosed;

        /// <summary>The address that it is bound to.</summary>
        public SocketAddr LocalAddress => socket.LocalEndPoint is IPEndPoint local ? new SocketAddr(local) : default;

        /// <summary>Whether datagrams may be sent to broadcast addresses; false by default.</summary>
        public bool EnableBroadcast
        {
            get => socket.EnableBroadcast;
            set => socket.EnableBroadcast = value;
        }

        /// <summary>Whether a back end is available on this system and runtime.</summary>
        /// <param name="backend">The back end. <see cref="UdpBackend.Automatic"/> is always available.</param>
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

        /// <summary>Creates a socket that is bound to an address and does not share it. Port 0 means any free
        /// port.</summary>
        /// <param name="local">The address.</param>
        /// <param name="backend">How to call the system.</param>
        /// <exception cref="SocketException">The address cannot be bound.</exception>
        public static UdpSocket Bind(IPEndPoint local, UdpBackend backend = UdpBackend.Automatic)
        {
            if (local == null)
            {
                throw new ArgumentNullException(nameof(local));
            }

            return Bind(new Socket(local.AddressFamily, SocketType.Dgram, ProtocolType.Udp), local, backend);
        }

        /// <summary>Creates a socket for both IPv6 and IPv4 on all interfaces. IPv4 peers appear as mapped IPv6
        /// addresses. On a system without IPv6 it is an IPv4 socket, and they appear as IPv4 addresses.</summary>
        /// <param name="port">The port; 0 means any free port.</param>
        /// <param name="backend">How to call the system.</param>
        /// <exception cref="SocketException">The port cannot be bound.</exception>
        public static UdpSocket BindDualMode(int port, UdpBackend backend = UdpBackend.Automatic)
        {
            try
            {
                Socket socket = new Socket(AddressFamily.InterNetworkV6, SocketType.Dgram, ProtocolType.Udp);
                return Bind(socket, new IPEndPoint(IPAddress.IPv6Any, port), backend, dualMode: true);
            }
            catch (SocketException error) when (error.SocketErrorCode == SocketError.AddressFamilyNotSupported
                || error.SocketErrorCode == SocketError.ProtocolFamilyNotSupported
                || error.SocketErrorCode == SocketError.ProtocolNotSupported
                || error.SocketErrorCode == SocketError.AddressNotAvailable)
            {
                return Bind(new IPEndPoint(IPAddress.Any, port), backend);
            }
        }

        /// <summary>Receives a datagram if there is one. Never blocks.</summary>
        /// <param name="buffer">The memory for the datagram. Bytes that do not fit are lost, and
        /// <see cref="Received.IsTruncated"/> is set.</param>
        /// <param name="received">Its length and sender.</param>
        /// <returns>False when there is nothing to read.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public bool TryReceive(Span<byte> buffer, out Received received)
        {
            guard.Enter();
            try
            {
                return linux != null
                    ? linux.TryReceive(buffer, out received)
                    : transport.TryReceive(buffer, out received);
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

        /// <summary>Receives a datagram, if there is one, directly into an allocator's item.</summary>
        /// <param name="allocator">Where the item comes from. Without a datagram it is unchanged.</param>
        /// <param name="slot">The item.</param>
        /// <param name="received">The datagram's length and sender.</param>
        /// <typeparam name="T">The type of the packet. Longer datagrams are truncated.</typeparam>
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
        /// <param name="buffer">The memory for the datagram, as for
        /// <see cref="TryReceive(Span{byte}, out Received)"/>.</param>
        /// <param name="milliseconds">The longest wait; -1 means without limit.</param>
        /// <param name="received">Its length and sender.</param>
        /// <returns>False when the time is over.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>, or when it is called during the
        /// wait.</exception>
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
        /// <param name="datagram">Its bytes; may be empty.</param>
        /// <param name="to">The address to send to. A dual-mode socket accepts IPv4 addresses.</param>
        /// <returns>False when the system has no room: try again later, or drop the datagram.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        /// <exception cref="SocketException">The datagram is too long, the address has another family, or the system
        /// reports an error.</exception>
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

        /// <summary>Receives as many datagrams as there are and as the batch has room for. Never blocks.</summary>
        /// <param name="batch">Receives the datagrams; its earlier ones are removed.</param>
        /// <returns>The number of datagrams; 0 when there is nothing to read. If an error occurs after some were
        /// received, the next call that receives throws it.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        public int ReceiveBatch(DatagramBatch batch)
        {
            if (batch == null)
            {
                throw new ArgumentNullException(nameof(batch));
            }

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

        /// <summary>Sends a batch's datagrams in order, until the system has no room. Never blocks. The batch does not
        /// change.</summary>
        /// <remarks>
        /// Several datagrams of equal length in a row to one address cost the least; the last one may be shorter. On
        /// <see cref="UdpBackend.LinuxNative"/> they go to the kernel as one message, which the kernel cuts into
        /// datagrams (UDP_SEGMENT), if it can.
        /// </remarks>
        /// <param name="batch">The datagrams.</param>
        /// <param name="first">The index of the first datagram to send; to continue, the total that earlier calls have
        /// sent.</param>
        /// <returns>The number of datagrams sent. If an error occurs after some were sent, the next call throws
        /// it.</returns>
        /// <exception cref="ObjectDisposedException">After <see cref="Dispose"/>.</exception>
        /// <exception cref="SocketException">As for <see cref="TrySend"/>.</exception>
        public int SendBatch(DatagramBatch batch, int first = 0)
        {
            if (batch == null)
            {
                throw new ArgumentNullException(nameof(batch));
            }

            if (first < 0 || first > batch.Count)
            {
                throw new ArgumentOutOfRangeException(
                    nameof(first), first, "The batch has " + batch.Count + " datagrams.");
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

        /// <summary>Closes the socket and wakes waiting threads. A second call does nothing. Returns at once; the last
        /// call in progress closes the descriptor.</summary>
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

        private static UdpSocket Bind(
            Socket socket, IPEndPoint local, UdpBackend backend, bool dualMode = false)
        {
            try
            {
                if (dualMode)
                {
                    socket.DualMode = true;
                }

                // Mono lets UDP sockets share addresses by default, and then the kernel may assign the same free port
                // twice.
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
