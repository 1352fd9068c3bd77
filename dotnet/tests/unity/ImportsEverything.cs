using Blockyard.Diagnostics;
using Blockyard.Memory;
using Blockyard.Sockets;
using Unity.Collections;
using Unity.Collections.LowLevel.Unsafe;

namespace Blockyard.Tests
{
    /// <summary>Imports both libraries' namespaces and Unity's. No name may be ambiguous.</summary>
    public static class ImportsEverything
    {
        public static int Use()
        {
            NativeArray<int> theirs = new NativeArray<int>(1, Allocator.Temp);
            UnmanagedArray<int> ours = new UnmanagedArray<int>(1, Lifetime.Temp);
            using UnmanagedAllocator<int> allocator = new UnmanagedAllocator<int>();
            allocator.Allocate() = UnsafeUtility.SizeOf<int>();
            return theirs.Length + ours.Length + (AllocationMeter.CanTell ? 1 : 0) + (int)UdpBackend.Automatic;
        }
    }
}
