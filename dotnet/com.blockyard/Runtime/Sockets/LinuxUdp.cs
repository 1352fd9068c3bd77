using System;
using System.Diagnostics;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>UDP by Linux system calls. One call a datagram or a batch; nothing on the collected heap.</summary>
    /// <remarks>Calls that can't block go by <see cref="DirectCalls"/> where there are any; the error number is then read in the
    /// same method, with nothing called in between.</remarks>
    internal sealed unsafe class LinuxUdp : UdpTransport
    {
        private const int SendFlags = LinuxNative.DontWait | LinuxNative.NoSignal;

        private static readonly Lazy<bool> Available = new Lazy<bool>(Probe);

        private readonly int descriptor;
        private readonly bool isIPv6;
        private readonly bool direct = DirectCalls.AreUsed;

        /// <summary>The longest datagrams of which several go as one message that the kernel cuts (UDP_SEGMENT); 0 for none.</summary>
        private volatile int longestSegment;

        internal LinuxUdp(Socket socket)
        {
            descriptor = (int)socket.Handle;
            isIPv6 = socket.AddressFamily == AddressFamily.InterNetworkV6;

            // A kernel older than 4.18 would send the message uncut; it does not know the option either.
            int value;
            uint length = sizeof(int);
            bool cuts = LinuxNative.GetOption(descriptor, LinuxNative.LevelUdp, LinuxNative.Segment, &value, &length) == 0;
            longestSegment = cuts ? LongestDatagram : 0;
        }

        internal static bool IsAvailable => Available.Value;

        /// <summary>The longest datagrams that still share a message: less once the kernel or the way refused to cut one.</summary>
        internal int LongestSegment => longestSegment;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal override bool TryReceive(Span<byte> buffer, out Received received)
        {
            // A struct, where Mono would clear what stackalloc gives by a call.
            LinuxSockaddr.Name name;
            byte* from = (byte*)&name;
            byte nowhere;
            fixed (byte* pinned = &MemoryMarshal.GetReference(buffer))
            {
                while (true)
                {
                    uint length = LinuxSockaddr.Room;

                    // With the flag the kernel answers how long the datagram was, not how much of it was stored.
                    const int Flags = LinuxNative.DontWait | LinuxNative.Truncated;
                    byte* to = pinned == null ? &nowhere : pinned;
                    nuint room = (nuint)buffer.Length;
                    long bytes = direct
                        ? DirectCalls.SystemCall(DirectCalls.ReceiveFrom, descriptor, to, (nint)room, Flags, from, (nint)(&length))
                        : LinuxNative.ReceiveFrom(descriptor, to, room, Flags, from, &length);
                    if (bytes >= 0)
                    {
                        int stored = buffer.Length;
                        bool isTruncated = bytes > stored;
                        fixed (Received* result = &received)
                        {
                            // Without an address it was no datagram: the socket is being shut down.
                            return Received.TryWrite(result, from, length, isTruncated ? stored : (int)bytes, isTruncated);
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
                        ? DirectCalls.SystemCall(DirectCalls.SendTo, descriptor, pinned, (nint)size, SendFlags, name, (nint)length)
                        : LinuxNative.SendTo(descriptor, pinned, size, SendFlags, name, length);
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
            while (true)
            {
                int count = isShort
                    ? (int)DirectCalls.SystemCall(DirectCalls.ReceiveMany, descriptor, batch.Messages, (nint)capacity, LinuxNative.DontWait, null, 0)
                    : LinuxNative.ReceiveMany(descriptor, batch.Messages, capacity, LinuxNative.DontWait, null);
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
                int count = direct
                    ? (int)DirectCalls.SystemCall(
                        DirectCalls.SendMany, descriptor, message, (nint)FewMessages(message, messages - next), SendFlags, null, 0)
                    : LinuxNative.SendMany(descriptor, message, (uint)(messages - next), SendFlags);
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

                if ((int)message->Message.PartCount > 1 && IsOfCutting(error))
                {
                    // Longer than packets on the way to there, or a device that leaves checksums to others: each by itself.
                    refusedAt = sent;
                    before = longestSegment;
                    longestSegment = error == LinuxNative.InputOutput ? 0 : (int)message->Message.Parts->Length - 1;
                    messages = batch.PrepareToSend(sent, isIPv6, longestSegment);
                    next = 0;
                    continue;
                }

                if (sent == refusedAt && IsOfCutting(error))
                {
                    // Refused by itself as well, as port 0 is: not for being cut, and no reason to cut none from now on.
                    longestSegment = before;
                }

                // What went out is told first; the error comes again with the datagram that caused it.
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
                    Descriptor = descriptor,
                    Events = LinuxNative.PollIn,
                };
                int answer = LinuxNative.Poll(&one, (UIntPtr)1, left);
                if (answer >= 0)
                {
                    return answer > 0;
                }

                // Mono stops threads for a collection by a signal, so nearly every collection interrupts a wait.
                int error = Marshal.GetLastWin32Error();
                if (error != LinuxNative.Interrupted)
                {
                    throw LinuxErrors.Exception(error);
                }

                if (milliseconds >= 0)
                {
                    left = (int)Math.Max(0, milliseconds - ((Stopwatch.GetTimestamp() - start) * 1000 / Stopwatch.Frequency));
                }
            }
        }

        // Answers "not connected" on UDP sockets, and wakes those who wait all the same.
        internal override void Wake() => LinuxNative.Shutdown(descriptor, LinuxNative.ShutdownBoth);

        /// <summary>Sorts an error: again at once, nothing to do now, or neither.</summary>
        private static bool IsWorthRetrying(int error, out bool nothing)
        {
            nothing = error == LinuxNative.TryAgain || error == LinuxNative.NoBuffers;

            // The kernel tells of a refused datagram once, by failing the next call, whichever it is.
            return error == LinuxNative.Interrupted || error == LinuxNative.Refused;
        }

        private static bool IsOfCutting(int error) => error == LinuxNative.Invalid || error == LinuxNative.MessageSize
            || error == LinuxNative.InputOutput || error == LinuxNative.NotSupported;

        /// <summary>
        /// How many of the messages have no more datagrams together than a direct call may send: at least one, since no message
        /// has more by itself (MostSegments of <see cref="DatagramBatch"/>).
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
