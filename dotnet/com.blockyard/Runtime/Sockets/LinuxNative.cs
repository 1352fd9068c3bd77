using System;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>Linux's constants, functions and layouts, for <see cref="LinuxUdp"/>.</summary>
    /// <remarks>
    /// Ordinary P/Invoke, which tells the collector that the thread runs native code. An unmanaged <c>calli</c> does
    /// not do that on Mono, and a blocking one would stop every collection. <see cref="DirectCalls"/> has the calls
    /// that never block.
    /// </remarks>
    internal static unsafe class LinuxNative
    {
        internal const int Interrupted = 4;
        internal const int TryAgain = 11;
        internal const int BadDescriptor = 9;
        internal const int NoBuffers = 105;
        internal const int Refused = 111;
        internal const int FamilyIPv4 = 2;
        internal const int FamilyIPv6 = 10;
        internal const int InputOutput = 5;
        internal const int Invalid = 22;
        internal const int MessageSize = 90;
        internal const int NotSupported = 95;
        internal const int LevelUdp = 17;
        internal const int Segment = 103;
        internal const int Truncated = 0x20;
        internal const int DontWait = 0x40;
        internal const int NoSignal = 0x4000;
        internal const short PollIn = 1;
        internal const int ShutdownBoth = 2;

        private const string Library = "libc";

        [DllImport(Library, SetLastError = true, EntryPoint = "recvfrom")]
        internal static extern nint ReceiveFrom(
            int descriptor, byte* buffer, nuint size, int flags, byte* from, uint* fromLength);

        [DllImport(Library, SetLastError = true, EntryPoint = "sendto")]
        internal static extern nint SendTo(
            int descriptor, byte* buffer, nuint size, int flags, byte* to, uint toLength);

        [DllImport(Library, SetLastError = true, EntryPoint = "recvmmsg")]
        internal static extern int ReceiveMany(
            int descriptor, BatchMessage* messages, uint count, int flags, void* timeout);

        [DllImport(Library, SetLastError = true, EntryPoint = "sendmmsg")]
        internal static extern int SendMany(int descriptor, BatchMessage* messages, uint count, int flags);

        [DllImport(Library, SetLastError = true, EntryPoint = "poll")]
        internal static extern int Poll(PollDescriptor* descriptors, UIntPtr count, int milliseconds);

        [DllImport(Library, SetLastError = true, EntryPoint = "shutdown")]
        internal static extern int Shutdown(int descriptor, int how);

        [DllImport(Library, SetLastError = true, EntryPoint = "getsockopt")]
        internal static extern int GetOption(int descriptor, int level, int option, void* value, uint* length);

#pragma warning disable CS0649 // the kernel assigns the rest
        /// <summary>struct pollfd.</summary>
        internal struct PollDescriptor
        {
            internal int Descriptor;
            internal short Events;
            internal short Returned;
        }

        /// <summary>struct iovec.</summary>
        internal struct Part
        {
            internal byte* Start;
            internal UIntPtr Length;
        }

        /// <summary>struct msghdr.</summary>
        internal struct Message
        {
            internal byte* Name;
            internal uint NameLength;
            internal Part* Parts;
            internal UIntPtr PartCount;
            internal byte* Control;
            internal UIntPtr ControlLength;
            internal int Flags;
        }

        /// <summary>struct mmsghdr.</summary>
        internal struct BatchMessage
        {
            internal Message Message;
            internal uint Length;
        }

        /// <summary>A struct cmsghdr with UDP_SEGMENT: the length of the datagrams that the kernel cuts a message
        /// into.</summary>
        internal struct SegmentControl
        {
            internal UIntPtr Length;
            internal int Level;
            internal int Type;
            internal ushort SegmentLength;
        }
#pragma warning restore CS0649
    }
}
