using System;
using System.Threading;

namespace Blockyard.Sockets
{
    /// <summary>Keeps a socket open while calls are under way: whoever leaves last after <see cref="Close"/> closes it.</summary>
    /// <remarks>
    /// What a SafeHandle does; Mono's is not public, and a descriptor that is closed under a system call may be another
    /// file's the next moment. Two atomics a call. Any thread.
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

        /// <exception cref="ObjectDisposedException">It is closed, or closing.</exception>
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
                // A late Enter may come by here a second time: closing a closed socket does nothing.
                close();
            }
        }

        /// <summary>Lets nobody in any more.</summary>
        /// <param name="wake">Called while the socket is certainly open, to wake who waits on it.</param>
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

                // One more inside, so that nobody closes it before `wake` is done.
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
