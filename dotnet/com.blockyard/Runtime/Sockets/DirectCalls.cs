using System;
using System.Runtime.InteropServices;

namespace Blockyard.Sockets
{
    /// <summary>The system calls for datagrams through a function pointer, on Mono. This saves 30 to 75 ns of P/Invoke
    /// per call.</summary>
    /// <remarks>
    /// <para>P/Invoke tells the collector that the thread runs native code; a function pointer does not, so a
    /// collection waits for the call to return. Therefore only short calls that never block (MSG_DONTWAIT) may use it.
    /// On .NET a function pointer saves nothing and may lose the error number. The pointers are null there, and where
    /// the functions are not found.</para>
    /// <para>The calls use libc's <c>syscall</c>, because <c>sendto</c> and similar functions are cancellation points,
    /// which cost two more atomic operations per call in a program with several threads. Processors whose call numbers
    /// are not listed here use P/Invoke.</para>
    /// </remarks>
    internal static unsafe class DirectCalls
    {
        /// <summary>The most datagrams per call. It limits how long a collection waits, to tens of
        /// microseconds.</summary>
        internal const int LargestBatch = 64;

        // Arguments: number, descriptor, bytes or messages, their count, flags, and address and its length or nothing.
        internal static readonly
            delegate* unmanaged[Cdecl]<nint, nint, void*, nint, nint, void*, nint, nint> SystemCall;

        /// <summary>The address of the thread's error number. Read it before any other call.</summary>
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
                // Before version 2.34, glibc kept dlsym in a separate library.
                return FindByLoader(IntPtr.Zero, name);
            }
        }

        [DllImport("libc", EntryPoint = "dlsym")]
        private static extern IntPtr FindInLibc(IntPtr everywhere, [MarshalAs(UnmanagedType.LPStr)] string name);

        [DllImport("libdl.so.2", EntryPoint = "dlsym")]
        private static extern IntPtr FindByLoader(IntPtr everywhere, [MarshalAs(UnmanagedType.LPStr)] string name);
    }
}
