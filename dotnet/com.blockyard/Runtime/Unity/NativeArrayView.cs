using System;
using Unity.Collections;
using Unity.Collections.LowLevel.Unsafe;

namespace Blockyard.Memory
{
    /// <summary>A <see cref="NativeArray{T}"/> of memory that Blockyard owns, for Unity's jobs and
    /// interfaces.</summary>
    /// <remarks>
    /// It copies nothing and owns nothing. The array is valid until the view is disposed, and the memory must live
    /// longer: Temp ends with the frame, and a list's memory moves when it grows. Where Unity's checks are on, the
    /// array has a safety handle, so the job system sees who reads and writes it. Disposing of the view while a job
    /// uses it throws then, and so does using the array later. Without them the view costs nothing. Main thread only.
    /// Burst can use the array, not the view.
    /// </remarks>
    /// <typeparam name="T">The type of the items.</typeparam>
    public unsafe struct NativeArrayView<T> : IDisposable
        where T : unmanaged
    {
        private NativeArray<T> array;
#if ENABLE_UNITY_COLLECTIONS_CHECKS
        private AtomicSafetyHandle handle;
        private bool isOpen;
#endif

        internal NativeArrayView(void* items, int length)
        {
            array = NativeArrayUnsafeUtility.ConvertExistingDataToNativeArray<T>(items, length, Allocator.None);
#if ENABLE_UNITY_COLLECTIONS_CHECKS
            handle = AtomicSafetyHandle.Create();
            isOpen = true;
            NativeArrayUnsafeUtility.SetAtomicSafetyHandle(ref array, handle);
#endif
        }

        /// <summary>The items as Unity's array. Do not dispose of it.</summary>
        public readonly NativeArray<T> Array => array;

        /// <summary>Ends the array. The memory is untouched. A second call on the same variable does nothing.</summary>
        /// <exception cref="InvalidOperationException">With Unity's checks: a job still uses the array.</exception>
        public void Dispose()
        {
#if ENABLE_UNITY_COLLECTIONS_CHECKS
            if (isOpen)
            {
                AtomicSafetyHandle.CheckDeallocateAndThrow(handle);
                AtomicSafetyHandle.Release(handle);
                isOpen = false;
            }
#endif
            array = default;
        }
    }
}
