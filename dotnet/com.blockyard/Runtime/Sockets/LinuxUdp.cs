using System;
using System.Diagnostics;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>UDP with Linux system calls: one call per datagram or batch, and no garbage.</summary>
    /// <remarks>Calls that cannot block use <see cref="DirectCalls"/> where available. The same method then reads the
    /// error number, with no call in between.</remarks>
    internal sealed unsafe class LinuxUdp : UdpTransport
    {
        private const int SendFlags = LinuxNative.DontWait | LinuxNative.NoSignal;

        private static readonly Lazy<bool> Available = new Lazy<bool>(Probe);

        private readonly int descriptor;
#if NET8_0_OR_GREATER
        private readonly SafeSocketHandle handle;
#endif
        private readonly bool isIPv6;
        private readonly bool direct = DirectCalls.AreUsed;

        /// <summary>The length of the longest datagrams that are sent as one message for the kernel to cut
        /// (UDP_SEGMENT); 0 for none.</summary>
        private volatile int longestSegment;

        internal LinuxUdp(Socket socket)
        {
            descriptor = (int)socket.Handle;
#if NET8_0_OR_GREATER
            handle = socket.SafeHandle;
#endif
            isIPv6 = socket.AddressFamily == AddressFamily.InterNetworkV6;

            // A kernel older than 4.18 would send the message uncut. It does not know this option.
            int value;
            uint length = sizeof(int);
            int refused = LinuxNative.GetOption(
                descriptor, LinuxNative.LevelUdp, LinuxNative.Segment, &value, &length);
            longestSegment = refused == 0 ? LongestDatagram : 0;
        }

        internal static bool IsAvailable => Available.Value;

        /// <summary>Whether somebody else closed the socket, whose descriptor may be another file's by now. Mono does
        /// not tell.</summary>
        private bool IsClosed
        {
#if NET8_0_OR_GREATER
            get => handle.IsClosed;
#else
            get => false;
#endif
        }

        /// <exception cref="ObjectDisposedException">Somebody else closed the socket.</exception>
        private int Descriptor
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => IsClosed ? throw new ObjectDisposedException(nameof(Socket)) : descriptor;
        }

        /// <summary>The length of the longest datagrams that share a message. It shrinks when the kernel refuses to cut
        /// a message.</summary>
        internal int LongestSegment => longestSegment;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal override bool TryReceive(Span<byte> buffer, out Received received)
        {
            // A struct, because Mono calls a function to clear the memory of stackalloc.
            LinuxSockaddr.Name name;
            byte* from = (byte*)&name;
            byte nowhere;
            fixed (byte* pinned = &MemoryMarshal.GetReference(buffer))
            {
                while (true)
                {
                    uint length = LinuxSockaddr.Room;

                    // With MSG_TRUNC the kernel returns the length of the datagram, not of the stored part.
                    const int Flags = LinuxNative.DontWait | LinuxNative.Truncated;
                    byte* to = pinned == null ? &nowhere : pinned;
                    nuint room = (nuint)buffer.Length;
                    long bytes = direct
                        ? DirectCalls.SystemCall(
                            DirectCalls.ReceiveFrom, Descriptor, to, (nint)room, Flags, from, (nint)(&length))
                        : LinuxNative.ReceiveFrom(Descriptor, to, room, Flags, from, &length);
                    if (bytes >= 0)
                    {
                        bool isTruncated = bytes > buffer.Length;
                        int stored = isTruncated ? buffer.Length : (int)bytes;
                        fixed (Received* result = &received)
                        {
                            // Without an address it is no datagram: the socket is being shut down.
                            return Received.TryWrite(result, from, length, stored, isTruncated);
                        }
                    }

                    int error = direct ? *DirectCalls.ErrorNumber() : Marshal.GetLastWin32Error();
                    if (!IsWorthRetrying(error, out bool nothing))
                    {
                        received = default;
                        return nothing ? false : throw LinuxErrors.Exception(error);
                    }
                }
            }
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal override bool TrySend(ReadOnlySpan<byte> datagram, in SocketAddr to)
        {
            LinuxSockaddr.Name room;
            byte* name = (byte*)&room;
            uint length = LinuxSockaddr.Write(to, name, isIPv6);
            if (length == 0 || (to.Family == AddressFamily.InterNetworkV6 && !isIPv6))
            {
                throw new SocketException((int)SocketError.AddressFamilyNotSupported);
            }

            fixed (byte* pinned = &MemoryMarshal.GetReference(datagram))
            {
                while (true)
                {
                    nuint size = (nuint)datagram.Length;
                    long bytes = direct
                        ? DirectCalls.SystemCall(
                            DirectCalls.SendTo, Descriptor, pinned, (nint)size, SendFlags, name, (nint)length)
                        : LinuxNative.SendTo(Descriptor, pinned, size, SendFlags, name, length);
                    if (bytes >= 0)
                    {
                        return true;
                    }

                    int error = direct ? *DirectCalls.ErrorNumber() : Marshal.GetLastWin32Error();
                    if (!IsWorthRetrying(error, out bool nothing))
                    {
                        return nothing ? false : throw LinuxErrors.Exception(error);
                    }
                }
            }
        }

        internal override int ReceiveBatch(DatagramBatch batch)
        {
            batch.PrepareToReceive();
            bool isShort = direct && batch.Capacity <= DirectCalls.LargestBatch;
            uint capacity = (uint)batch.Capacity;
            const int Flags = LinuxNative.DontWait;
            while (true)
            {
                int count = isShort
                    ? (int)DirectCalls.SystemCall(
                        DirectCalls.ReceiveMany, Descriptor, batch.Messages, (nint)capacity, Flags, null, 0)
                    : LinuxNative.ReceiveMany(Descriptor, batch.Messages, capacity, Flags, null);
                if (count >= 0)
                {
                    return batch.TakeReceived(count);
                }

                int error = isShort ? *DirectCalls.ErrorNumber() : Marshal.GetLastWin32Error();
                if (!IsWorthRetrying(error, out bool nothing))
                {
                    return nothing ? 0 : throw LinuxErrors.Exception(error);
                }
            }
        }

        internal override int SendBatch(DatagramBatch batch, int first)
        {
            int messages = batch.PrepareToSend(first, isIPv6, longestSegment);
            if (messages < 0)
            {
                throw new SocketException((int)SocketError.AddressFamilyNotSupported);
            }

            int sent = first;
            int refusedAt = -1;
            int before = longestSegment;
            for (int next = 0; next < messages;)
            {
                LinuxNative.BatchMessage* message = batch.Messages + next;
                int left = messages - next;
                int count = direct
                    ? (int)DirectCalls.SystemCall(
                        DirectCalls.SendMany, Descriptor, message, (nint)FewMessages(message, left), SendFlags, null, 0)
                    : LinuxNative.SendMany(Descriptor, message, (uint)left, SendFlags);
                if (count > 0)
                {
                    for (next += count; count > 0; count--, message++)
                    {
                        sent += (int)message->Message.PartCount;
                    }

                    continue;
                }

                int error = direct ? *DirectCalls.ErrorNumber() : Marshal.GetLastWin32Error();
                if (IsWorthRetrying(error, out bool nothing))
                {
                    continue;
                }

                if ((int)message->Message.PartCount > 1 && MayBeCutting(error))
                {
                    // The datagrams are longer than the packets on the way, or the device cannot compute checksums:
                    // send each one alone.
                    refusedAt = sent;
                    before = longestSegment;
                    longestSegment = error == LinuxNative.InputOutput ? 0 : (int)message->Message.Parts->Length - 1;
                    messages = batch.PrepareToSend(sent, isIPv6, longestSegment);
                    next = 0;
                    continue;
                }

                if (sent == refusedAt && MayBeCutting(error))
                {
                    // Refused alone as well, like port 0. Cutting was not the reason, so later messages may be cut.
                    longestSegment = before;
                }

                // Returns what was sent first. The next call fails at the datagram that caused the error.
                return nothing || sent > first ? sent - first : throw LinuxErrors.Exception(error);
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
                    Descriptor = Descriptor,
                    Events = LinuxNative.PollIn,
                };
                int answer = LinuxNative.Poll(&one, (UIntPtr)1, left);
                if (answer >= 0)
                {
                    return answer > 0;
                }

                // Mono stops threads for a collection with a signal, so nearly every collection interrupts a wait.
                int error = Marshal.GetLastWin32Error();
                if (error != LinuxNative.Interrupted)
                {
                    throw LinuxErrors.Exception(error);
                }

                if (milliseconds >= 0)
                {
                    long waited = (Stopwatch.GetTimestamp() - start) * 1000 / Stopwatch.Frequency;
                    left = (int)Math.Max(0, milliseconds - waited);
                }
            }
        }

        // Fails with "not connected" on UDP sockets, but still wakes waiting threads.
        internal override void Wake()
        {
            if (!IsClosed)
            {
                LinuxNative.Shutdown(descriptor, LinuxNative.ShutdownBoth);
            }
        }

        /// <summary>Classifies an error: retry at once, nothing to do now, or neither.</summary>
        private static bool IsWorthRetrying(int error, out bool nothing)
        {
            nothing = error == LinuxNative.TryAgain || error == LinuxNative.NoBuffers;

            // The kernel reports a refused datagram once, by failing the next call of any kind.
            return error == LinuxNative.Interrupted || error == LinuxNative.Refused;
        }

        private static bool MayBeCutting(int error) => error == LinuxNative.Invalid || error == LinuxNative.MessageSize
            || error == LinuxNative.InputOutput || error == LinuxNative.NotSupported;

        /// <summary>
        /// The number of messages whose datagrams fit in a direct call. At least one, because no message has more
        /// datagrams than that (MostSegments of <see cref="DatagramBatch"/>).
        /// </summary>
        private static uint FewMessages(LinuxNative.BatchMessage* messages, int count)
        {
            int datagrams = 0;
            for (int i = 0; i < count; i++)
            {
                datagrams += (int)messages[i].Message.PartCount;
                if (datagrams > DirectCalls.LargestBatch)
                {
                    return (uint)i;
                }
            }

            return (uint)count;
        }

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
            catch (TypeLoadException)
            {
                // The library or a function of it is not there.
                return false;
            }
        }
    }
}
