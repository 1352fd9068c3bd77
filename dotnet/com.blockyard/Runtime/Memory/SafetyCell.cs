using System;

namespace Blockyard.Memory
{
    /// <summary>A counter in unmanaged memory that identifies a life. A copy of its value is out of date once that life
    /// has ended.</summary>
    /// <remarks>
    /// The memory of cells is never freed, so an old copy of a container can always read its cell. A reused cell
    /// continues to count. Any thread; taking and giving back use a lock.
    /// </remarks>
    internal static unsafe class SafetyCell
    {
        private const int CellsPerBlock = 1024;

        private static readonly object Gate = new object();
        private static IntPtr[] free = new IntPtr[CellsPerBlock];
        private static int freeCount;

        internal static uint* Take()
        {
            lock (Gate)
            {
                if (freeCount == 0)
                {
                    uint* block = (uint*)RawMemory.Allocate(CellsPerBlock * sizeof(uint));
                    for (int i = CellsPerBlock - 1; i >= 0; i--)
                    {
                        block[i] = 1;
                        free[freeCount++] = (IntPtr)(block + i);
                    }
                }

                return (uint*)free[--freeCount];
            }
        }

        /// <summary>Ends the current life and makes the cell available again.</summary>
        internal static void Give(uint* cell)
        {
            lock (Gate)
            {
                (*cell)++;
                if (freeCount == free.Length)
                {
                    Array.Resize(ref free, freeCount * 2);
                }

                free[freeCount++] = (IntPtr)cell;
            }
        }
    }
}
