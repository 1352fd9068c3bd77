using System;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>The system calls of every datagram by function pointer, on Mono: without its 30 to 75 ns of P/Invoke a call.</summary>
    /// <remarks>
    /// What is saved is telling the collector that the thread is outside, so a collection waits until the call is back: only
    /// for calls that never block (MSG_DONTWAIT) and are short. .NET tells its collector all the same and may lose the error
    /// number on the way, so there, and where the functions can't be found, the pointers are null.
    /// </remarks>
    internal static unsafe class DirectCalls
    {
        /// <summary>The most datagrams of one call, so that a collection waits for tens of microseconds at most.</summary>
        internal const int LargestBatch = 64;

        internal static readonly delegate* unmanaged[Cdecl]<int, byte*, nuint, int, byte*, uint*, nint> ReceiveFrom;
        internal static readonly delegate* unmanaged[Cdecl]<int, byte*, nuint, int, byte*, uint, nint> SendTo;
        internal static readonly delegate* unmanaged[Cdecl]<int, LinuxNative.BatchMessage*, uint, int, void*, int> ReceiveMany;
        internal static readonly delegate* unmanaged[Cdecl]<int, LinuxNative.BatchMessage*, uint, int, int> SendMany;

        /// <summary>Where the thread's error number is; to be read before anything else is called.</summary>
        internal static readonly delegate* unmanaged[Cdecl]<int*> ErrorNumber;

        static DirectCalls()
        {
            if (Type.GetType("Mono.Runtime") == null)
            {
                return;
            }

            IntPtr receive = Find("recvfrom");
            IntPtr send = Find("sendto");
            IntPtr receiveMany = Find("recvmmsg");
            IntPtr sendMany = Find("sendmmsg");
            IntPtr error = Find("__errno_location");
            if (receive == IntPtr.Zero || send == IntPtr.Zero || receiveMany == IntPtr.Zero || sendMany == IntPtr.Zero
                || error == IntPtr.Zero)
            {
                return;
            }

            ReceiveFrom = (delegate* unmanaged[Cdecl]<int, byte*, nuint, int, byte*, uint*, nint>)receive;
            SendTo = (delegate* unmanaged[Cdecl]<int, byte*, nuint, int, byte*, uint, nint>)send;
            ReceiveMany = (delegate* unmanaged[Cdecl]<int, LinuxNative.BatchMessage*, uint, int, void*, int>)receiveMany;
            SendMany = (delegate* unmanaged[Cdecl]<int, LinuxNative.BatchMessage*, uint, int, int>)sendMany;
            ErrorNumber = (delegate* unmanaged[Cdecl]<int*>)error;
        }

        internal static bool AreUsed => ErrorNumber != null;

        private static IntPtr Find(string name)
        {
            try
            {
                return FindInLibc(IntPtr.Zero, name);
            }
            catch (EntryPointNotFoundException)
            {
                // Before its version 2.34 glibc had it in a library of its own.
                return FindByLoader(IntPtr.Zero, name);
            }
        }

        [DllImport("libc", EntryPoint = "dlsym")]
        private static extern IntPtr FindInLibc(IntPtr everywhere, [MarshalAs(UnmanagedType.LPStr)] string name);

        [DllImport("libdl.so.2", EntryPoint = "dlsym")]
        private static extern IntPtr FindByLoader(IntPtr everywhere, [MarshalAs(UnmanagedType.LPStr)] string name);
    }
}
