namespace Blockyard.Sockets
{
    /// <summary>How a <see cref="UdpSocket"/> calls the system.</summary>
    public enum UdpBackend
    {
        /// <summary>The first of the others that is available.</summary>
        Automatic = 0,

        /// <summary>Linux system calls: no allocation, and one system call per batch (recvmmsg, sendmmsg).</summary>
        LinuxNative = 1,

        /// <summary>.NET 8's overloads with a reused <c>SocketAddress</c>: no allocation.</summary>
        SocketAddress = 2,

        /// <summary>A reused <see cref="IPEndPointNonAlloc"/>: any runtime; 96 bytes per receive on Mono.</summary>
        EndPointNonAlloc = 3,

        /// <summary>The runtime's ordinary socket calls, for comparison.</summary>
        Plain = 4,
    }
}
