using System;
using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>An end point that is used again for every packet, so that <see cref="Socket"/> need not make new ones.</summary>
    /// <remarks>
    /// <para>What it serializes to is kept, and <see cref="Create"/> takes the received address over and returns itself.
    /// Mono still makes a received address by itself, and that is all that a receive then costs there: 96 bytes for IPv4, 104
    /// for IPv6. On .NET 8 it costs nothing.</para>
    /// <para>It changes with every packet: keep <see cref="DeepCopyIPEndPoint"/> of it, or <see cref="Addr"/>.
    /// <see cref="Address"/> here makes an <see cref="IPAddress"/> when it is asked; through a variable of the base type, the
    /// address is the one it was made with (the port is always right). One thread at a time.</para>
    /// </remarks>
    public class IPEndPointNonAlloc : IPEndPoint
    {
        private readonly Proxy receiver;
        private readonly Proxy target;
        private SocketAddress serialized;
        private IPAddress baseAddress;
        private int basePort;

        /// <summary>An end point of an IPv4 address.</summary>
        /// <param name="address">The address as <see cref="IPAddress(long)"/> takes it.</param>
        /// <param name="port">The port.</param>
        public IPEndPointNonAlloc(long address, int port)
            : this(new IPAddress(address), port)
        {
        }

        /// <summary>An end point; for receiving, of the socket's family with any address and port.</summary>
        /// <param name="address">The address.</param>
        /// <param name="port">The port.</param>
        public IPEndPointNonAlloc(IPAddress address, int port)
            : base(address, port)
        {
            serialized = base.Serialize();
            baseAddress = address;
            basePort = port;
            receiver = new Proxy(this, takesAddresses: true);
            target = new Proxy(this, takesAddresses: false);
        }

        /// <summary>The address and port as a value that can be kept, compared and used as a key. Allocates nothing.</summary>
        public SocketAddr Addr => SocketAddr.From(Serialize());

        /// <summary>The address, made anew when read.</summary>
        public new IPAddress Address
        {
            get => Addr.ToIPAddress();
            set => base.Address = value;
        }

        /// <summary>The port.</summary>
        public new int Port
        {
            get => Addr.Port;
            set
            {
                // A received address must not fall back to the one that the base class remembers.
                base.Address = Addr.ToIPAddress();
                base.Port = value;
            }
        }

        /// <summary>The kept address: the last one received, or the one set since.</summary>
        public override SocketAddress Serialize()
        {
            // The base class's setters can't be overridden, so their traces are looked for.
            if (!ReferenceEquals(base.Address, baseAddress) || base.Port != basePort)
            {
                serialized = base.Serialize();
                baseAddress = base.Address;
                basePort = base.Port;
            }

            return serialized;
        }

        /// <summary>Takes a received address over and returns this end point. Allocates nothing.</summary>
        /// <param name="socketAddress">An address of this end point's family; it is kept.</param>
        /// <exception cref="ArgumentException">Another family.</exception>
        public override EndPoint Create(SocketAddress socketAddress)
        {
            if (socketAddress == null)
            {
                throw new ArgumentNullException(nameof(socketAddress));
            }

            if (socketAddress.Family != AddressFamily)
            {
                throw new ArgumentException(
                    "An address of family " + socketAddress.Family + " was received into an end point of " + AddressFamily + ".",
                    nameof(socketAddress));
            }

            serialized = socketAddress;
            baseAddress = base.Address;
            TakePort();
            return this;
        }

        /// <summary>A hash of the whole address, the same as that of <see cref="DeepCopyIPEndPoint"/>.</summary>
        /// <remarks>Never of the runtime's <see cref="SocketAddress"/>: on Mono that is 0 for a received one.</remarks>
        public override int GetHashCode() => Addr.GetHashCode();

        /// <summary>Whether it is an end point of the same address and port.</summary>
        /// <param name="comparand">Any object.</param>
        public override bool Equals(object? comparand) => comparand is IPEndPoint other && Addr == new SocketAddr(other);

        /// <inheritdoc/>
        public override string ToString() => Addr.ToString();

        /// <summary>An end point of its own that stays as it is, for keeping: in a client, or as a key.</summary>
        /// <remarks>
        /// A dictionary keyed by such copies finds them by the reused end point as well, since both hash the whole address.
        /// </remarks>
        public IPEndPoint DeepCopyIPEndPoint() => new Copy(Addr);

        /// <summary>What a socket of the same family is given to receive into this end point.</summary>
        internal EndPoint AsReceiver => receiver;

        /// <summary>What a socket of the same family is given to send to this end point.</summary>
        internal EndPoint AsTarget => target;

        /// <summary>Catches up after .NET wrote a received address into the kept one without a word.</summary>
        internal void Refresh(EndPoint received)
        {
            if (ReferenceEquals(received, this) || !(received is IPEndPoint) || ReferenceEquals(received, receiver.Seed))
            {
                TakePort();
            }
            else
            {
                // A dual-mode socket received into an IPv4 end point: the runtime made an IPv6 one in its place.
                base.Address = ((IPEndPoint)received).Address;
                base.Port = ((IPEndPoint)received).Port;
            }
        }

        private void TakePort()
        {
            if (serialized.Size < 8)
            {
                // A socket that is being shut down reads as an empty datagram of no address.
                serialized = base.Serialize();
            }

            basePort = (serialized[2] << 8) | serialized[3];
            base.Port = basePort;
        }

        /// <summary>Stands in for its owner with a socket, so that the socket remembers something that never changes.</summary>
        /// <remarks>
        /// Mono's socket remembers the end point that it sent to, or that <see cref="EndPoint.Create"/> returned, and answers
        /// <c>LocalEndPoint</c> by its <c>Create</c>: were that the owner, asking a socket for its own address would
        /// overwrite the peer's.
        /// </remarks>
        private sealed class Proxy : EndPoint
        {
            private readonly IPEndPointNonAlloc owner;
            private readonly bool takesAddresses;

            internal Proxy(IPEndPointNonAlloc owner, bool takesAddresses)
            {
                this.owner = owner;
                this.takesAddresses = takesAddresses;
                AddressFamily = owner.AddressFamily;
                Seed = new IPEndPoint(
                    AddressFamily == AddressFamily.InterNetworkV6 ? IPAddress.IPv6Any : IPAddress.Any, 0);
            }

            public override AddressFamily AddressFamily { get; }

            internal IPEndPoint Seed { get; }

            public override SocketAddress Serialize() => owner.Serialize();

            public override EndPoint Create(SocketAddress socketAddress)
            {
                if (!takesAddresses)
                {
                    return Seed.Create(socketAddress);
                }

                owner.Create(socketAddress);
                return Seed;
            }
        }

        /// <summary>Immutable as far as the base class allows; equal and hashed by the whole address.</summary>
        private sealed class Copy : IPEndPoint
        {
            internal Copy(in SocketAddr addr)
                : base(addr.ToIPAddress(), addr.Port)
            {
            }

            public override int GetHashCode() => new SocketAddr(Address, Port).GetHashCode();

            public override bool Equals(object? comparand) =>
                comparand is IPEndPoint other && new SocketAddr(Address, Port) == new SocketAddr(other);
        }
    }
}
