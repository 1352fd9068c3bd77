using System;
using System.Net;
using System.Net.Sockets;

#pragma warning disable CS0618 // temp is obsolete for users
namespace Blockyard.Sockets
{
    /// <summary>An end point that is reused for every packet, so that <see cref="Socket"/> does not make new
    /// ones.</summary>
    /// <remarks>
    /// <para>It keeps its serialized form, and <see cref="Create"/> stores the received address and returns the same
    /// object. Mono still allocates the received address, so a receive costs 96 bytes for IPv4 and 104 for IPv6 there.
    /// On .NET 8 only the first packet of a client costs something.</para>
    /// <para>It changes with every packet: keep <see cref="DeepCopyIPEndPoint"/> or <see cref="Addr"/> instead. On Mono
    /// <see cref="Address"/> makes a new <see cref="IPAddress"/> at every read, and through a variable of the base type
    /// the bytes of the address are those from the constructor, but the port is right. A receive that fails leaves the
    /// last sender. One thread at a time.</para>
    /// <para>It equals every end point of the same address and port, and hashes like its <see cref="SocketAddress"/>,
    /// as where-allocation does. An ordinary end point has another hash, so don't mix both as keys. Peers can choose
    /// addresses whose hashes collide: use <see cref="Addr"/> as a key, and no hash as an identifier.</para>
    /// </remarks>
    public class IPEndPointNonAlloc : IPEndPoint
    {
        /// <summary>The address of the last packet, as in where-allocation.</summary>
        [Obsolete("Use Addr, which is a value that can be kept and compared.")]
        public SocketAddress temp;

        /// <summary>Whether the runtime asks an address object itself whether it equals another: Mono does.</summary>
        private static readonly bool CanStandIn = !new IPEndPoint(IPAddress.Loopback, 1).Equals(
            new IPEndPoint(new StandIn(IPAddress.Loopback, null), 1));

        /// <summary>The most address objects that one end point keeps.</summary>
        private const int MostKnown = 4096;

        private readonly Proxy receiver;
        private readonly Proxy target;
        private ClientTable<IPAddress>? known;
        private SocketAddress taken;
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
            baseAddress = address;
            basePort = port;
            taken = temp = TakeBase();
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
            // The base class's setters cannot be overridden, and temp is a field, so this detects their changes.
            if (!ReferenceEquals(base.Address, baseAddress) || base.Port != basePort)
            {
                taken = temp = TakeBase();
            }
            else if (!ReferenceEquals(temp, taken) || IsCutShort(temp))
            {
                TakeReceived();
            }

            return temp;
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

            temp = socketAddress;
            TakeReceived();
            return this;
        }

        /// <summary>The hash of its <see cref="SocketAddress"/>: of the whole address and the port.</summary>
        public override int GetHashCode() => CanStandIn ? Addr.PlainHash : Serialize().GetHashCode();

        /// <summary>Whether it is an end point of the same address and port.</summary>
        /// <param name="comparand">Any object.</param>
        public override bool Equals(object? comparand) =>
            comparand is IPEndPoint other && Addr == new SocketAddr(other);

        /// <inheritdoc/>
        public override string ToString() => Addr.ToString();

        /// <summary>Makes an ordinary end point that does not change, to keep in a client.</summary>
        public IPEndPoint DeepCopyIPEndPoint() => Addr.ToIPEndPoint();

        /// <summary>The object to pass to a socket of the same family to receive into this end point.</summary>
        internal EndPoint AsReceiver => receiver;

        /// <summary>The object to pass to a socket of the same family to send to this end point.</summary>
        internal EndPoint AsTarget => target;

        /// <summary>Updates the base class after a socket has written a received address into the serialized form, or
        /// has failed to.</summary>
        internal void Refresh(EndPoint received)
        {
            if (ReferenceEquals(received, this) || ReferenceEquals(received, receiver.Seed)
                || !(received is IPEndPoint other))
            {
                TakeReceived();
            }
            else
            {
                // A dual-mode socket received into an IPv4 end point: the runtime made an IPv6 one instead.
                base.Address = other.Address;
                base.Port = other.Port;
            }
        }

        /// <summary>Takes the address and port that the base class has.</summary>
        private SocketAddress TakeBase()
        {
            if (CanStandIn && !(base.Address is StandIn))
            {
                base.Address = new StandIn(base.Address, this);
            }

            baseAddress = base.Address;
            basePort = base.Port;
            return base.Serialize();
        }

        /// <summary>Takes the address and port that the serialized form has.</summary>
        private void TakeReceived()
        {
            if (IsCutShort(temp))
            {
                // A socket that is being shut down receives an empty datagram without an address, and after a receive
                // that failed .NET 8 leaves an address without bytes.
                temp = IsCutShort(taken) ? base.Serialize() : taken;
            }

            // Mono computes the hash of a received address only after a byte of it has changed.
            byte portLow = temp[3];
            temp[3] = (byte)~portLow;
            temp[3] = portLow;
            basePort = (temp[2] << 8) | portLow;
            base.Port = basePort;
            if (!CanStandIn)
            {
                base.Address = Known(SocketAddr.From(temp).WithoutPort);
            }

            baseAddress = base.Address;
            taken = temp;
        }

        /// <summary>The object for an address, from the table or else new.</summary>
        private IPAddress Known(in SocketAddr address)
        {
            known ??= new ClientTable<IPAddress>(0);
            if (!known.TryGet(address, out IPAddress found))
            {
                if (known.Count == MostKnown)
                {
                    known.Clear();
                }

                found = address.ToIPAddress();
                known[address] = found;
            }

            return found;
        }

        private static bool IsCutShort(SocketAddress address) =>
            address.Size < 8 || (address.Size < 24 && address.Family == AddressFamily.InterNetworkV6);

        /// <summary>Equals its owner's current address, so that an ordinary end point compares with that.</summary>
        private sealed class StandIn : IPAddress
        {
            private readonly IPEndPointNonAlloc? owner;

            internal StandIn(IPAddress address, IPEndPointNonAlloc? owner)
                : base(address.GetAddressBytes())
            {
                this.owner = owner;
                if (AddressFamily == AddressFamily.InterNetworkV6)
                {
                    ScopeId = address.ScopeId;
                }
            }

            public override bool Equals(object? comparand) => comparand is IPAddress other && owner != null
                && (ReferenceEquals(this, other) || owner.Addr.WithoutPort == new SocketAddr(other, 0));

            public override int GetHashCode() => owner == null ? 0 : owner.Address.GetHashCode();

            public override string ToString() => owner == null ? base.ToString() : owner.Address.ToString();
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
    }
}
