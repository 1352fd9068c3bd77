#pragma warning disable CS0162 // checks are a constant in Unity
using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Checks of arguments. <see cref="Check"/> does nothing while <see cref="Checks"/> are off.</summary>
    internal static class Bounds
    {
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void Check(int index, int length)
        {
            if (Checks.AreOn && (uint)index >= (uint)length)
            {
                Throw(index, length);
            }
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

        private static void Throw(int index, int length) =>
            throw new IndexOutOfRangeException(
                "There is no index " + index
                + (length == 0 ? ": nothing is there." : ", only 0 to " + (length - 1) + "."));
    }
}
