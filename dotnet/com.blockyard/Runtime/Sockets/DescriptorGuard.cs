using System;
using System.Threading;

namespace Blockyard.Sockets
{
    /// <summary>Keeps a socket open during calls. The last call to leave after <see cref="Close"/> closes it.</summary>
    /// <remarks>
    /// It does what a SafeHandle does, but Mono's is not public. If a descriptor were closed during a system call, it
    /// could belong to another file a moment later. Two atomic operations per call. Any thread.
    /// </remarks>
    internal sealed class DescriptorGuard
    {
        private const int Closed = int.MinValue;

        private readonly Action close;
        private int state;

        internal DescriptorGuard(Action close)
        {
            this.close = close;
        }

        internal bool IsClosed => Volatile.Read(ref state) < 0;

        /// <exception cref="ObjectDisposedException">The guard is closed or closing.</exception>
        internal void Enter()
        {
            if (Interlocked.Increment(ref state) < 0)
            {
                Leave();
                throw new ObjectDisposedException(nameof(UdpSocket));
            }
        }

        internal void Leave()
        {
            if (Interlocked.Decrement(ref state) == Closed)
            {
                // A late Enter may get here a second time. Closing a closed socket does nothing.
                close();
            }
        }

        /// <summary>Rejects further calls.</summary>
        /// <param name="wake">Called while the socket is still open, to wake waiting threads.</param>
        /// <returns>False when it was closed before.</returns>
        internal bool Close(Action wake)
        {
            int seen = Volatile.Read(ref state);
            while (true)
            {
                if (seen < 0)
                {
                    return false;
                }

                // Enters as well, so that the socket stays open until `wake` returns.
                int found = Interlocked.CompareExchange(ref state, (seen + 1) | Closed, seen);
                if (found == seen)
                {
                    wake();
                    Leave();
                    return true;
                }

                seen = found;
            }
        }
    }
}
