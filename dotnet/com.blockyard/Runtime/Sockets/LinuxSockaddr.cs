using System.Net.Sockets;
using System.Runtime.CompilerServices;

namespace Blockyard.Sockets
{
    /// <summary>Between <see cref="SocketAddr"/> and Linux's sockaddr_in and sockaddr_in6.</summary>
    internal static unsafe class LinuxSockaddr
    {
        /// <summary>Bytes that the kernel's address is given, sockaddr_in6 being 28.</summary>
        internal const int Room = 32;

        private const int LengthIPv4 = 16;
        private const int LengthIPv6 = 28;

        /// <summary>What the kernel wrote; none for a family or a length that is not IP's.</summary>
        internal static SocketAddr Read(byte* from, uint length)
        {
            SocketAddr address;
            TryRead(from, length, &address);
            return address;
        }

        /// <summary>The same into <paramref name="to"/>; false, and none is there, for what is not IP's.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)] // Mono inlines only the shortest by itself
        internal static bool TryRead(byte* from, uint length, SocketAddr* to)
        {
            if (length >= LengthIPv4 && *(ushort*)from == LinuxNative.FamilyIPv4)
            {
                SocketAddr.Write(to, AddressFamily.InterNetwork, Port(from), *(uint*)(from + 4), 0, 0, 0);
                return true;
            }

            if (length >= LengthIPv6 && *(ushort*)from == LinuxNative.FamilyIPv6)
            {
                SocketAddr.Write(
                    to, AddressFamily.InterNetworkV6, Port(from), *(ulong*)(from + 8), *(ulong*)(from + 16),
                    *(uint*)(from + 24), *(uint*)(from + 4));
                return true;
            }

            SocketAddr.Write(to, 0, 0, 0, 0, 0, 0);
            return false;
        }

        /// <summary>Writes it in the kernel's form, as IPv6 where the socket is; returns its length, 0 for none.</summary>
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
#pragma warning disable CS0169, CS0649 // only their room matters
            private ulong first;
            private ulong second;
            private ulong third;
            private ulong fourth;
#pragma warning restore CS0169, CS0649
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private static ushort Port(byte* address) => (ushort)((address[2] << 8) | address[3]);

        private static void SetPort(byte* address, int port)
        {
            address[2] = (byte)(port >> 8);
            address[3] = (byte)port;
        }
    }
}
