using System;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>The system calls of every datagram by function pointer, on Mono: without its 30 to 75 ns of P/Invoke a call.</summary>
    /// <remarks>
    /// <para>What is saved is telling the collector that the thread is outside, so a collection waits until the call is back:
    /// only for calls that never block (MSG_DONTWAIT) and are short. .NET tells its collector all the same and may lose the
    /// error number on the way, so there, and where the functions can't be found, the pointers are null.</para>
    /// <para>They go by libc's <c>syscall</c>, since its <c>sendto</c> and kin are cancellation points, which cost two more
    /// atomics a call where there is more than one thread. Processors whose numbers are not here have P/Invoke.</para>
    /// </remarks>
    internal static unsafe class DirectCalls
    {
        /// <summary>The most datagrams of one call, so that a collection waits for tens of microseconds at most.</summary>
        internal const int LargestBatch = 64;

        // Number, descriptor, bytes or messages, how many, flags, then address and its length, or nothing.
        internal static readonly delegate* unmanaged[Cdecl]<nint, nint, void*, nint, nint, void*, nint, nint> SystemCall;

        /// <summary>Where the thread's error number is; to be read before anything else is called.</summary>
        internal static readonly delegate* unmanaged[Cdecl]<int*> ErrorNumber;

        internal static readonly int SendTo;
        internal static readonly int ReceiveFrom;
        internal static readonly int SendMany;
        internal static readonly int ReceiveMany;

        static DirectCalls()
        {
            if (Type.GetType("Mono.Runtime") == null)
            {
                return;
            }

            switch (RuntimeInformation.ProcessArchitecture)
            {
                case Architecture.X64:
                    (SendTo, ReceiveFrom, SendMany, ReceiveMany) = (44, 45, 307, 299);
                    break;
                case Architecture.Arm64:
                    (SendTo, ReceiveFrom, SendMany, ReceiveMany) = (206, 207, 269, 243);
                    break;
                default:
                    return;
            }

            IntPtr call = Find("syscall");
            IntPtr error = Find("__errno_location");
            if (call != IntPtr.Zero && error != IntPtr.Zero)
            {
                SystemCall = (delegate* unmanaged[Cdecl]<nint, nint, void*, nint, nint, void*, nint, nint>)call;
                ErrorNumber = (delegate* unmanaged[Cdecl]<int*>)error;
            }
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
