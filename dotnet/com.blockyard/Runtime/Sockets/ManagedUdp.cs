using System;
using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>The base of the back ends on the runtime's sockets. They poll before they read, and read into an array
    /// that is large enough for any datagram.</summary>
    /// <remarks>Locks allow one reader and one sender at a time. A read costs two system calls and a copy.</remarks>
    internal abstract class ManagedUdp : UdpTransport
    {
        // Runtimes differ in whether closing a socket ends a poll, so a wait polls for a short time repeatedly.
        private const int LongestWait = 50;

        private readonly object reading = new object();
        private readonly object writing = new object();
        private readonly byte[] received = new byte[LongestDatagram];
        private readonly byte[] sent = new byte[LongestDatagram];
        private volatile bool isClosing;

        private protected ManagedUdp(Socket socket)
        {
            Socket = socket;
        }

        private protected Socket Socket { get; }

        internal override bool TryReceive(Span<byte> buffer, out Received datagram)
        {
            ThrowPostponed();
            lock (reading)
            {
                while (!isClosing && Socket.Poll(0, SelectMode.SelectRead))
                {
                    try
                    {
                        int bytes = Receive(received, out SocketAddr from);
                        if (isClosing)
                        {
                            break;
                        }

                        int stored = Math.Min(bytes, buffer.Length);
                        new ReadOnlySpan<byte>(received, 0, stored).CopyTo(buffer);
                        datagram = new Received(from, stored, bytes > buffer.Length);
                        return true;
                    }
                    catch (Exception error) when (isClosing && !(error is OutOfMemoryException))
                    {
                        // A socket that is being shut down receives an empty datagram without an address, or is
                        // interrupted.
                        break;
                    }
                    catch (SocketException error) when (
                        IsEarlierRefusal(error.SocketErrorCode) || error.SocketErrorCode == SocketError.Interrupted)
                    {
                    }
                    catch (SocketException error) when (error.SocketErrorCode == SocketError.WouldBlock)
                    {
                        // Another reader of the same socket, outside this object, was faster.
                        break;
                    }
                }

                datagram = default;
                return false;
            }
        }

        internal override bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to)
        {
            bool socketIsIPv4 = Socket.AddressFamily == AddressFamily.InterNetwork;
            if (to.IsNone || (socketIsIPv4 && to.Family == AddressFamily.InterNetworkV6))
            {
                throw new SocketException((int)SocketError.AddressFamilyNotSupported);
            }

            if (datagram.Length > sent.Length)
            {
                throw new SocketException((int)SocketError.MessageSize);
            }

            lock (writing)
            {
                datagram.CopyTo(sent);
                SocketAddr target = socketIsIPv4 ? to : to.MapToIPv6();
                while (true)
                {
                    try
                    {
                        if (!Socket.Poll(0, SelectMode.SelectWrite))
                        {
                            return false;
                        }

                        Send(sent, datagram.Length, target);
                        return true;
                    }
                    catch (SocketException error) when (IsEarlierRefusal(error.SocketErrorCode))
                    {
                    }
                    catch (SocketException error) when (
                        error.SocketErrorCode == SocketError.WouldBlock
                        || error.SocketErrorCode == SocketError.NoBufferSpaceAvailable)
                    {
                        return false;
                    }
                }
            }
        }

        internal override bool Wait(int milliseconds)
        {
            int slice = milliseconds < 0 ? LongestWait : Math.Min(milliseconds, LongestWait);
            return Socket.Poll(slice * 1000, SelectMode.SelectRead);
        }

        internal override void Wake()
        {
            isClosing = true;
            try
            {
                Socket.Shutdown(SocketShutdown.Both);
            }
            catch (SocketException)
            {
                // A UDP socket says that it is not connected. On Linux the call still wakes waiting threads.
            }
            catch (ObjectDisposedException)
            {
                // Somebody else closed it, which also wakes them.
            }
        }

        private protected abstract int Receive(byte[] buffer, out SocketAddr from);

        private protected abstract void Send(byte[] buffer, int length, in SocketAddr to);

        private protected static IPAddress Any(Socket socket) =>
            socket.AddressFamily == AddressFamily.InterNetworkV6 ? IPAddress.IPv6Any : IPAddress.Any;
    }
}
