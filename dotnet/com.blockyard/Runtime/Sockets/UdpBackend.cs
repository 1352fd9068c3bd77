namespace Blockyard.Sockets
{
    /// <summary>By which means a <see cref="UdpSocket"/> talks to the system.</summary>
    public enum UdpBackend
    {
        /// <summary>The first of the others that is available.</summary>
        Automatic = 0,

        /// <summary>Linux system calls: no allocation, and real batches (recvmmsg, sendmmsg).</summary>
        LinuxNative = 1,

        /// <summary>.NET 8's overloads with a reused <c>SocketAddress</c>: no allocation.</summary>
        SocketAddress = 2,

        /// <summary>A reused <see cref="IPEndPointNonAlloc"/>: any runtime; on Mono 96 bytes a receive.</summary>
        EndPointNonAlloc = 3,

        /// <summary>The runtime's sockets as they are: for comparison.</summary>
        Plain = 4,
    }
}
