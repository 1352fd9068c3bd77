using System;
using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>What the back ends on the runtime's own sockets share: they look before they read, and read into a scratch
    /// array that no datagram is too long for.</summary>
    /// <remarks>One thread reads and one sends at a time, by locks. A read costs two system calls and a copy.</remarks>
    internal abstract class ManagedUdp : UdpTransport
    {
        // The runtimes do not agree on what closing does to a poll under way, so a wait looks up now and then.
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
                        // A socket that is being shut down reads as an empty datagram of no address, or as interrupted.
                        break;
                    }
                    catch (SocketException error) when (
                        IsOldNews(error.SocketErrorCode) || error.SocketErrorCode == SocketError.Interrupted)
                    {
                    }
                    catch (SocketException error) when (error.SocketErrorCode == SocketError.WouldBlock)
                    {
                        // Another reader of the same socket, outside of this object, was faster.
                        break;
                    }
                }

                datagram = default;
                return false;
            }
        }

        internal override bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to)
        {
            if (to.IsNone || (to.Family == AddressFamily.InterNetworkV6 && Socket.AddressFamily == AddressFamily.InterNetwork))
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
                SocketAddr target = Socket.AddressFamily == AddressFamily.InterNetworkV6 ? to.MapToIPv6() : to;
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
                    catch (SocketException error) when (IsOldNews(error.SocketErrorCode))
                    {
                    }
                    catch (SocketException error) when (
                        error.SocketErrorCode == SocketError.WouldBlock || error.SocketErrorCode == SocketError.NoBufferSpaceAvailable)
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
                // A UDP socket answers that it is not connected; on Linux those who wait are woken even so.
            }
        }

        private protected abstract int Receive(byte[] buffer, out SocketAddr from);

        private protected abstract void Send(byte[] buffer, int length, in SocketAddr to);

        private protected IPEndPointNonAlloc AnyAddress() => new IPEndPointNonAlloc(
            Socket.AddressFamily == AddressFamily.InterNetworkV6 ? IPAddress.IPv6Any : IPAddress.Any, 0);
    }
}
