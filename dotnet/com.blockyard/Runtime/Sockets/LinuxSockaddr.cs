using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>Converts between <see cref="SocketAddr"/> and Linux's sockaddr_in and sockaddr_in6.</summary>
    internal static unsafe class LinuxSockaddr
    {
        /// <summary>Bytes to reserve for the kernel's address; sockaddr_in6 has 28.</summary>
        internal const int Room = 32;

        private const int LengthIPv4 = 16;
        private const int LengthIPv6 = 28;

        /// <summary>Reads what the kernel wrote. The result is no address when the family or the length is not one of
        /// IP.</summary>
        internal static SocketAddr Read(byte* from, uint length)
        {
            SocketAddr address;
            TryRead(from, length, &address);
            return address;
        }

        /// <summary>Writes the same to <paramref name="to"/>. Returns false when it is no address.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)] // Mono inlines only very short methods on its own
        internal static bool TryRead(byte* from, uint length, SocketAddr* to)
        {
            Head* name = (Head*)from;
            uint head = name->FamilyAndPort;
            if (length >= LengthIPv4 && (ushort)head == LinuxNative.FamilyIPv4)
            {
                SocketAddr.Write(to, (uint)AddressFamily.InterNetwork | PortBits(head), name->AddressIPv4, 0, 0);
                return true;
            }

            if (length >= LengthIPv6 && (ushort)head == LinuxNative.FamilyIPv6)
            {
                ulong first = (uint)AddressFamily.InterNetworkV6 | PortBits(head) | ((ulong)name->ScopeIPv6 << 32);
                SocketAddr.Write(to, first, name->HighIPv6, name->LowIPv6, name->FlowIPv6);
                return true;
            }

            SocketAddr.Write(to, 0, 0, 0, 0);
            return false;
        }

        /// <summary>Writes an address in the kernel's form, as IPv6 for an IPv6 socket. Returns its length, 0 for no
        /// address.</summary>
        internal static uint Write(in SocketAddr address, byte* to, bool socketIsIPv6)
        {
            if (address.Family == AddressFamily.InterNetwork && !socketIsIPv6)
            {
                *(ushort*)to = LinuxNative.FamilyIPv4;
                SetPort(to, address.Port);
                *(uint*)(to + 4) = (uint)address.High;
                *(ulong*)(to + 8) = 0;
                return LengthIPv4;
            }

            if (address.IsNone)
            {
                return 0;
            }

            SocketAddr six = address.MapToIPv6();
            *(ushort*)to = LinuxNative.FamilyIPv6;
            SetPort(to, six.Port);
            *(uint*)(to + 4) = six.FlowInfo;
            *(ulong*)(to + 8) = six.High;
            *(ulong*)(to + 16) = six.Low;
            *(uint*)(to + 24) = six.ScopeId;
            return LengthIPv6;
        }

        /// <summary><see cref="Room"/> bytes on the stack.</summary>
        internal struct Name
        {
#pragma warning disable CS0169, CS0649 // only their size matters
            private ulong first;
            private ulong second;
            private ulong third;
            private ulong fourth;
#pragma warning restore CS0169, CS0649
        }

        /// <summary>The port from bit 16 on. It follows the family, with its high byte first.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private static uint PortBits(uint head) => ((head & 0xFF0000) << 8) | ((head >> 8) & 0xFF0000);

        private static void SetPort(byte* address, int port)
        {
            address[2] = (byte)(port >> 8);
            address[3] = (byte)port;
        }

        /// <summary>sockaddr_in and sockaddr_in6 in one. Fields, because Mono computes every offset to a pointer
        /// again.</summary>
        [StructLayout(LayoutKind.Explicit)]
        private struct Head
        {
#pragma warning disable CS0649 // the kernel assigns them
            [FieldOffset(0)]
            internal uint FamilyAndPort;
            [FieldOffset(4)]
            internal uint AddressIPv4;
            [FieldOffset(4)]
            internal uint FlowIPv6;
            [FieldOffset(8)]
            internal ulong HighIPv6;
            [FieldOffset(16)]
            internal ulong LowIPv6;
            [FieldOffset(24)]
            internal uint ScopeIPv6;
#pragma warning restore CS0649
        }
    }
}
