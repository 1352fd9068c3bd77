using System;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Security.Cryptography;

namespace Blockyard.Sockets
{
    /// <summary>An IPv4 or IPv6 address with a port: 32 bytes, blittable, compared by value.</summary>
    /// <remarks>
    /// A key for dictionaries that tells all peers apart: it compares family, address, port and scope. It carries the
    /// flow label but does not compare it, because a peer may change it with every packet. The hash has a seed per
    /// process, so that peers cannot choose colliding addresses. Immutable.
    /// </remarks>
    [StructLayout(LayoutKind.Explicit, Size = 32)]
    public readonly unsafe struct SocketAddr : IEquatable<SocketAddr>
    {
        // .NET's number of the family, not the kernel's: Linux uses 10 for IPv6, .NET 23.
        [FieldOffset(0)]
        private readonly ushort family;
        [FieldOffset(2)]
        private readonly ushort port;
        [FieldOffset(4)]
        private readonly uint scope;

        // The address in network order. An IPv4 address is the first four bytes.
        [FieldOffset(8)]
        private readonly ulong high;
        [FieldOffset(16)]
        private readonly ulong low;
        [FieldOffset(24)]
        private readonly uint flow;

        private static readonly ulong Seed = NewSeed();

        internal SocketAddr(AddressFamily family, ushort port, ulong high, ulong low, uint scope, uint flow)
        {
            this.family = (ushort)family;
            this.port = port;
            this.high = high;
            this.low = low;
            this.scope = scope;
            this.flow = flow;
        }

        /// <summary>Writes a whole address in place. Mono copies the result of a constructor or call instead.</summary>
        /// <param name="to">The destination.</param>
        /// <param name="head">The family, the port from bit 16 on, the scope from bit 32 on.</param>
        /// <param name="high">The address's first eight bytes.</param>
        /// <param name="low">The last eight.</param>
        /// <param name="flow">IPv6's flow information.</param>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void Write(SocketAddr* to, ulong head, ulong high, ulong low, uint flow)
        {
            Words* words = (Words*)to;
            words->Head = head;
            words->High = high;
            words->Low = low;
            words->Flow = flow;
        }

        /// <summary>Creates an address with a port.</summary>
        /// <param name="address">IPv4 or IPv6.</param>
        /// <param name="port">0 to 65,535.</param>
        /// <exception cref="ArgumentException">The address is neither IPv4 nor IPv6.</exception>
        public SocketAddr(IPAddress address, int port)
            : this()
        {
            if (address == null)
            {
                throw new ArgumentNullException(nameof(address));
            }

            if (port < 0 || port > 65535)
            {
                throw new ArgumentOutOfRangeException(nameof(port), port, "A port is 0 to 65,535.");
            }

            CheckFamily(address.AddressFamily);
            ulong* bytes = stackalloc ulong[2];
            bytes[0] = 0;
            bytes[1] = 0;
            address.TryWriteBytes(new Span<byte>(bytes, 16), out _);
            family = (ushort)address.AddressFamily;
            this.port = (ushort)port;
            high = bytes[0];
            low = bytes[1];
            scope = address.AddressFamily == AddressFamily.InterNetworkV6 ? unchecked((uint)address.ScopeId) : 0;
        }

        /// <summary>Creates the address of an end point. Allocates nothing.</summary>
        /// <param name="endPoint">IPv4 or IPv6.</param>
        public SocketAddr(IPEndPoint endPoint)
        {
            this = endPoint is IPEndPointNonAlloc reused ? reused.Addr
                : endPoint != null ? new SocketAddr(endPoint.Address, endPoint.Port)
                : throw new ArgumentNullException(nameof(endPoint));
        }

        /// <summary>Whether it is the default value, which is no address.</summary>
        public bool IsNone => family == 0;

        /// <summary>IPv4 or IPv6.</summary>
        public AddressFamily Family => (AddressFamily)family;

        /// <summary>The port.</summary>
        public int Port => port;

        /// <summary>The IPv6 scope (interface) of a link-local address, or 0.</summary>
        public uint ScopeId => scope;

        /// <summary>The IPv6 flow label and traffic class from the system, or 0.</summary>
        public uint FlowInfo => flow;

        /// <summary>Whether it is an IPv4 address mapped to IPv6 (::ffff:a.b.c.d), as dual-mode sockets receive
        /// them.</summary>
        public bool IsIPv4MappedToIPv6 => family == (ushort)AddressFamily.InterNetworkV6 && high == 0 && IsMapped(low);

        /// <summary>The same address with port 0.</summary>
        internal SocketAddr WithoutPort => new SocketAddr((AddressFamily)family, 0, high, low, scope, 0);

        /// <summary>Mono's hash of a <see cref="SocketAddress"/> without flow information: all its words
        /// together.</summary>
        internal int PlainHash
        {
            get
            {
                ulong words = high ^ low;
                uint head = family | ((uint)(port >> 8) << 16) | ((uint)port << 24);
                return unchecked((int)(head ^ (uint)words ^ (uint)(words >> 32) ^ scope));
            }
        }

        internal ulong High => high;

        internal ulong Low => low;

        /// <summary>Whether both are the same peer.</summary>
        /// <param name="left">One address.</param>
        /// <param name="right">The other address.</param>
        public static bool operator ==(SocketAddr left, SocketAddr right) => left.Equals(right);

        /// <summary>Whether they are different peers.</summary>
        /// <param name="left">One address.</param>
        /// <param name="right">The other address.</param>
        public static bool operator !=(SocketAddr left, SocketAddr right) => !left.Equals(right);

        /// <summary>Converts a <see cref="SocketAddress"/> of the runtime. Allocates nothing.</summary>
        /// <remarks>Reads only the bytes it needs: on Mono a received IPv4 address has 8 bytes, a serialized one
        /// 16.</remarks>
        /// <param name="address">IPv4 or IPv6.</param>
        /// <exception cref="ArgumentException">Another family, or too few bytes for its family.</exception>
        public static SocketAddr From(SocketAddress address)
        {
            if (address == null)
            {
                throw new ArgumentNullException(nameof(address));
            }

            CheckFamily(address.Family);
            bool six = address.Family == AddressFamily.InterNetworkV6;
            if (address.Size < (six ? 24 : 8))
            {
                throw new ArgumentException("The address is cut short.", nameof(address));
            }

            ulong* bytes = stackalloc ulong[2];
            bytes[0] = 0;
            bytes[1] = 0;
            int length = six ? 16 : 4;
            for (int i = 0; i < length; i++)
            {
                ((byte*)bytes)[i] = address[i + (six ? 8 : 4)];
            }

            uint scope = six && address.Size >= 28 ? Word(address, 24) : 0;
            uint flow = six ? Word(address, 4) : 0;
            ushort port = (ushort)((address[2] << 8) | address[3]);
            return new SocketAddr(address.Family, port, bytes[0], bytes[1], scope, flow);
        }

        /// <summary>The IPv6 form of an IPv4 address; an IPv6 address unchanged.</summary>
        public SocketAddr MapToIPv6() => family != (ushort)AddressFamily.InterNetwork
            ? this
            : new SocketAddr(AddressFamily.InterNetworkV6, port, 0, Mapped((uint)high), 0, 0);

        /// <summary>The IPv4 address of a mapped address; any other address unchanged.</summary>
        public SocketAddr MapToIPv4() => !IsIPv4MappedToIPv6
            ? this
            : new SocketAddr(AddressFamily.InterNetwork, port, Unmapped(low), 0, 0, 0);

        /// <summary>Makes an end point with the same address and port.</summary>
        /// <exception cref="InvalidOperationException">It is the default value.</exception>
        public IPEndPoint ToIPEndPoint() => new IPEndPoint(ToIPAddress(), port);

        /// <summary>Makes an address object, without the port.</summary>
        /// <exception cref="InvalidOperationException">It is the default value.</exception>
        public IPAddress ToIPAddress()
        {
            if (IsNone)
            {
                throw new InvalidOperationException("The default SocketAddr is no address.");
            }

            ulong* bytes = stackalloc ulong[2];
            bytes[0] = high;
            bytes[1] = low;
            return family == (ushort)AddressFamily.InterNetworkV6
                ? new IPAddress(new ReadOnlySpan<byte>(bytes, 16), scope)
                : new IPAddress(new ReadOnlySpan<byte>(bytes, 4));
        }

        /// <inheritdoc/>
        public bool Equals(SocketAddr other) =>
            high == other.high && low == other.low && port == other.port && family == other.family
            && scope == other.scope;

        /// <inheritdoc/>
        public override bool Equals(object? obj) => obj is SocketAddr other && Equals(other);

        /// <inheritdoc/>
        public override int GetHashCode()
        {
            // Two rounds of multiply and fold. The constants are fractional digits of the golden ratio and of pi.
            ulong mixed = Fold((high ^ Seed) + port, 0x9E3779B97F4A7C15UL);
            mixed = Fold(mixed ^ low ^ ((ulong)scope << 32) ^ family, 0x243F6A8885A308D3UL);
            return unchecked((int)(mixed ^ (mixed >> 32)));
        }

        /// <inheritdoc/>
        public override string ToString() => IsNone ? "none" : ToIPEndPoint().ToString();

        private static void CheckFamily(AddressFamily family)
        {
            if (family != AddressFamily.InterNetwork && family != AddressFamily.InterNetworkV6)
            {
                throw new ArgumentException("The address family " + family + " is neither IPv4 nor IPv6.");
            }
        }

        private static uint Word(SocketAddress address, int at) =>
            address[at] | ((uint)address[at + 1] << 8) | ((uint)address[at + 2] << 16) | ((uint)address[at + 3] << 24);

        private static bool IsMapped(ulong low)
        {
            byte* bytes = (byte*)&low;
            return bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 0xFF && bytes[3] == 0xFF;
        }

        private static ulong Mapped(uint four)
        {
            ulong low = 0;
            byte* bytes = (byte*)&low;
            bytes[2] = 0xFF;
            bytes[3] = 0xFF;
            *(uint*)(bytes + 4) = four;
            return low;
        }

        private static ulong Unmapped(ulong low)
        {
            ulong high = 0;
            *(uint*)&high = *(uint*)((byte*)&low + 4);
            return high;
        }

        private static ulong Fold(ulong value, ulong factor)
        {
            value = unchecked(value * factor);
            return value ^ (value >> 29);
        }

        private static ulong NewSeed()
        {
            byte[] bytes = new byte[8];
            using (RandomNumberGenerator random = RandomNumberGenerator.Create())
            {
                random.GetBytes(bytes);
            }

            return BitConverter.ToUInt64(bytes, 0);
        }

        /// <summary>The fields as whole words. The last one includes four bytes of padding.</summary>
        private struct Words
        {
            internal ulong Head;
            internal ulong High;
            internal ulong Low;
            internal ulong Flow;
        }
    }
}
