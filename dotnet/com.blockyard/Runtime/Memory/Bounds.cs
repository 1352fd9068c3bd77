using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Checks of arguments. <see cref="Check"/> is empty where BLOCKYARD_RELEASE is defined.</summary>
    internal static class Bounds
    {
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void Check(int index, int length)
        {
#if !BLOCKYARD_RELEASE
            if ((uint)index >= (uint)length)
            {
                throw new IndexOutOfRangeException("Index " + index + " is outside of 0 to " + (length - 1) + ".");
            }
#endif
        }

        internal static void CheckCount(int count, string name)
        {
            if (count < 0)
            {
                throw new ArgumentOutOfRangeException(name, count, "A count is 0 or more.");
            }
        }

        internal static int Grown(int capacity, int needed)
        {
            if (needed < 0)
            {
                throw new OutOfMemoryException("A container holds at most " + int.MaxValue + " items.");
            }

            return (int)Math.Min(int.MaxValue, Math.Max(Math.Max(8L, needed), capacity * 2L));
        }
    }
}
