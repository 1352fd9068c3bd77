using System;

namespace Blockyard.Memory
{
    /// <summary>A word of unmanaged memory that counts the lives of something: who remembers its value can tell they ended.</summary>
    /// <remarks>
    /// Cells are never given back to the runtime, so that an old copy of a container may always look. A cell that is used
    /// again goes on counting. Any thread; a lock on taking and giving.
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

        /// <summary>Ends the current life and offers the cell to others.</summary>
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
