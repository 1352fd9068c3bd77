using System.Net.Sockets;

namespace Blockyard.Sockets
{
    /// <summary>Translates Linux's error numbers to .NET's.</summary>
    internal static class LinuxErrors
    {
        internal static SocketException Exception(int error)
        {
            switch (error)
            {
                case 1: // EPERM, of a firewall
                case 13: // EACCES, of a broadcast that was not enabled
                    return new SocketException((int)SocketError.AccessDenied);
                case LinuxNative.BadDescriptor:
                case 88: // ENOTSOCK, of a descriptor that is another file's by now
                    return new SocketException((int)SocketError.NotSocket);
                case LinuxNative.Invalid:
                    return new SocketException((int)SocketError.InvalidArgument);
                case 32: // EPIPE, after a shutdown
                    return new SocketException((int)SocketError.Shutdown);
                case LinuxNative.MessageSize:
                    return new SocketException((int)SocketError.MessageSize);
                case 97: // EAFNOSUPPORT
                    return new SocketException((int)SocketError.AddressFamilyNotSupported);
                case 99: // EADDRNOTAVAIL
                    return new SocketException((int)SocketError.AddressNotAvailable);
                case 100: // ENETDOWN
                    return new SocketException((int)SocketError.NetworkDown);
                case 101: // ENETUNREACH
                    return new SocketException((int)SocketError.NetworkUnreachable);
                case 113: // EHOSTUNREACH
                    return new SocketException((int)SocketError.HostUnreachable);
                default:
                    return new SocketException((int)SocketError.SocketError);
            }
        }
    }
}
