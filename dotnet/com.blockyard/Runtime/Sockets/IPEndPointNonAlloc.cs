using System;
using System.Net;
using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>An end point that is reused for every packet, so that <see cref="Socket"/> does not make new
    /// ones.</summary>
    /// <remarks>
    /// <para>It keeps its serialized form, and <see cref="Create"/> stores the received address and returns the same
    /// object. Mono still allocates the received address, so a receive costs 96 bytes for IPv4 and 104 for IPv6 there.
    /// On .NET 8 it costs nothing.</para>
    /// <para>It changes with every packet: keep <see cref="DeepCopyIPEndPoint"/> or <see cref="Addr"/> instead.
    /// <see cref="Address"/> makes a new <see cref="IPAddress"/> at every read. Through a variable of the base type,
    /// the address is the one from the constructor, but the port is right. One thread at a time.</para>
    /// </remarks>
    public class IPEndPointNonAlloc : IPEndPoint
    {
        private readonly Proxy receiver;
        private readonly Proxy target;
        private SocketAddress serialized;
        private IPAddress baseAddress;
        private int basePort;

        /// <summary>Creates an end point of an IPv4 address.</summary>
        /// <param name="address">The address, as for <see cref="IPAddress(long)"/>.</param>
        /// <param name="port">The port.</param>
        public IPEndPointNonAlloc(long address, int port)
            : this(new IPAddress(address), port)
        {
        }

        /// <summary>Creates an end point. For receiving, any address of the socket's family and any port will
        /// do.</summary>
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

        /// <summary>The address and port as a value that can be kept, compared and used as a key. Allocates
        /// nothing.</summary>
        public SocketAddr Addr => SocketAddr.From(Serialize());

        /// <summary>The address. Every read makes a new object.</summary>
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
                // Keeps the received address: the base class still has an older one.
                base.Address = Addr.ToIPAddress();
                base.Port = value;
            }
        }

        /// <summary>The current address: the last one received, or the one set after that.</summary>
        public override SocketAddress Serialize()
        {
            // The base class's setters cannot be overridden, so this detects their effect.
            if (!ReferenceEquals(base.Address, baseAddress) || base.Port != basePort)
            {
                serialized = base.Serialize();
                baseAddress = base.Address;
                basePort = base.Port;
            }

            return serialized;
        }

        /// <summary>Stores a received address and returns this end point. Allocates nothing.</summary>
        /// <param name="socketAddress">An address of this end point's family. The object is kept.</param>
        /// <exception cref="ArgumentException">The address has another family.</exception>
        public override EndPoint Create(SocketAddress socketAddress)
        {
            if (socketAddress == null)
            {
                throw new ArgumentNullException(nameof(socketAddress));
            }

            if (socketAddress.Family != AddressFamily)
            {
                throw new ArgumentException(
                    "An address of family " + socketAddress.Family + " was received into an end point of "
                    + AddressFamily + ".",
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
        public override bool Equals(object? comparand) =>
            comparand is IPEndPoint other && Addr == new SocketAddr(other);

        /// <inheritdoc/>
        public override string ToString() => Addr.ToString();

        /// <summary>Makes a copy that does not change, to keep in a client or to use as a key.</summary>
        /// <remarks>
        /// A dictionary keyed by such copies finds them by the reused end point as well, since both hash the whole
        /// address.
        /// </remarks>
        public IPEndPoint DeepCopyIPEndPoint() => new Copy(Addr);

        /// <summary>The object to pass to a socket of the same family to receive into this end point.</summary>
        internal EndPoint AsReceiver => receiver;

        /// <summary>The object to pass to a socket of the same family to send to this end point.</summary>
        internal EndPoint AsTarget => target;

        /// <summary>Updates the port after a socket has written a received address into the serialized form.</summary>
        internal void Refresh(EndPoint received)
        {
            if (ReferenceEquals(received, this) || ReferenceEquals(received, receiver.Seed)
                || !(received is IPEndPoint other))
            {
                TakePort();
            }
            else
            {
                // A dual-mode socket received into an IPv4 end point: the runtime made an IPv6 one instead.
                base.Address = other.Address;
                base.Port = other.Port;
            }
        }

        private void TakePort()
        {
            if (serialized.Size < 8)
            {
                // A socket that is being shut down receives an empty datagram without an address.
                serialized = base.Serialize();
            }

            basePort = (serialized[2] << 8) | serialized[3];
            base.Port = basePort;
        }

        /// <summary>Represents its owner to a socket, so that the socket keeps an object that never changes.</summary>
        /// <remarks>
        /// Mono's socket keeps the end point that it sent to, or that <see cref="EndPoint.Create"/> returned, and calls
        /// its <c>Create</c> to compute <c>LocalEndPoint</c>. If it kept the owner, reading a socket's local address
        /// would overwrite the peer's.
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
