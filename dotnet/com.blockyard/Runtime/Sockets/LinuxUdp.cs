using System;
using System.Diagnostics;
using System.Net.Sockets;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>UDP by Linux system calls. One call a datagram or a batch; nothing on the collected heap.</summary>
    internal sealed unsafe class LinuxUdp : UdpTransport
    {
        private static readonly Lazy<bool> Available = new Lazy<bool>(Probe);

        private readonly int descriptor;
        private readonly bool isIPv6;

        internal LinuxUdp(Socket socket)
        {
            descriptor = (int)socket.Handle;
            isIPv6 = socket.AddressFamily == AddressFamily.InterNetworkV6;
        }

        internal static bool IsAvailable => Available.Value;

        internal override bool TryReceive(Span<byte> buffer, out Received received)
        {
            byte* from = stackalloc byte[LinuxSockaddr.Room];
            byte nowhere;
            fixed (byte* pinned = &MemoryMarshal.GetReference(buffer))
            {
                while (true)
                {
                    uint length = LinuxSockaddr.Room;

                    // With the flag the kernel answers how long the datagram was, not how much of it was stored.
                    long bytes = (long)LinuxNative.ReceiveFrom(
                        descriptor, pinned == null ? &nowhere : pinned, (UIntPtr)(uint)buffer.Length,
                        LinuxNative.DontWait | LinuxNative.Truncated, from, &length);
                    if (bytes >= 0)
                    {
                        SocketAddr address = LinuxSockaddr.Read(from, length);
                        received = new Received(address, (int)Math.Min(bytes, buffer.Length), bytes > buffer.Length);

                        // Without an address it was no datagram: the socket is being shut down.
                        return !address.IsNone;
                    }

                    if (!IsWorthRetrying(out bool nothing))
                    {
                        received = default;
                        return nothing ? false : throw Failure();
                    }
                }
            }
        }

        internal override bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to)
        {
            byte* name = stackalloc byte[LinuxSockaddr.Room];
            uint length = LinuxSockaddr.Write(to, name, isIPv6);
            if (length == 0 || (to.Family == AddressFamily.InterNetworkV6 && !isIPv6))
            {
                throw new SocketException((int)SocketError.AddressFamilyNotSupported);
            }

            fixed (byte* pinned = &MemoryMarshal.GetReference(datagram))
            {
                while (true)
                {
                    long bytes = (long)LinuxNative.SendTo(
                        descriptor, pinned, (UIntPtr)(uint)datagram.Length, LinuxNative.DontWait | LinuxNative.NoSignal, name, length);
                    if (bytes >= 0)
                    {
                        return true;
                    }

                    if (!IsWorthRetrying(out bool nothing))
                    {
                        return nothing ? false : throw Failure();
                    }
                }
            }
        }

        internal override int ReceiveBatch(DatagramBatch batch)
        {
            batch.PrepareToReceive();
            while (true)
            {
                int count = LinuxNative.ReceiveMany(
                    descriptor, batch.Messages, (uint)batch.Capacity, LinuxNative.DontWait, IntPtr.Zero);
                if (count >= 0)
                {
                    return batch.TakeReceived(count);
                }

                if (!IsWorthRetrying(out bool nothing))
                {
                    return nothing ? 0 : throw Failure();
                }
            }
        }

        internal override int SendBatch(DatagramBatch batch, int first)
        {
            if (!batch.PrepareToSend(first, isIPv6))
            {
                throw new SocketException((int)SocketError.AddressFamilyNotSupported);
            }

            int sent = first;
            while (sent < batch.Count)
            {
                int count = LinuxNative.SendMany(
                    descriptor, batch.Messages + sent, (uint)(batch.Count - sent), LinuxNative.DontWait | LinuxNative.NoSignal);
                if (count > 0)
                {
                    sent += count;
                }
                else if (!IsWorthRetrying(out bool nothing))
                {
                    // What went out is told first; the error comes again with the datagram that caused it.
                    return nothing || sent > first ? sent - first : throw Failure();
                }
            }

            return sent - first;
        }

        internal override bool Wait(int milliseconds)
        {
            long start = Stopwatch.GetTimestamp();
            int left = milliseconds;
            while (true)
            {
                LinuxNative.PollDescriptor one = new LinuxNative.PollDescriptor
                {
                    Descriptor = descriptor,
                    Events = LinuxNative.PollIn,
                };
                int answer = LinuxNative.Poll(&one, (UIntPtr)1, left);
                if (answer >= 0)
                {
                    return answer > 0;
                }

                // Mono stops threads for a collection by a signal, so nearly every collection interrupts a wait.
                if (Marshal.GetLastWin32Error() != LinuxNative.Interrupted)
                {
                    throw Failure();
                }

                if (milliseconds >= 0)
                {
                    left = (int)Math.Max(0, milliseconds - ((Stopwatch.GetTimestamp() - start) * 1000 / Stopwatch.Frequency));
                }
            }
        }

        // Answers "not connected" on UDP sockets, and wakes those who wait all the same.
        internal override void Wake() => LinuxNative.Shutdown(descriptor, LinuxNative.ShutdownBoth);

        /// <summary>Sorts the last error: again at once, nothing to do now, or neither.</summary>
        private static bool IsWorthRetrying(out bool nothing)
        {
            int error = Marshal.GetLastWin32Error();
            nothing = error == LinuxNative.TryAgain || error == LinuxNative.NoBuffers;

            // The kernel tells of a refused datagram once, by failing the next call, whichever it is.
            return error == LinuxNative.Interrupted || error == LinuxNative.Refused;
        }

        /// <summary>Of the last error, in .NET's terms.</summary>
        private static SocketException Failure() => LinuxErrors.Exception(Marshal.GetLastWin32Error());

        private static bool Probe()
        {
            if (!RuntimeInformation.IsOSPlatform(OSPlatform.Linux) || !BitConverter.IsLittleEndian)
            {
                return false;
            }

            try
            {
                LinuxNative.PollDescriptor none = default;
                return LinuxNative.Poll(&none, UIntPtr.Zero, 0) == 0;
            }
            catch (DllNotFoundException)
            {
                return false;
            }
            catch (EntryPointNotFoundException)
            {
                return false;
            }
        }
    }
}
