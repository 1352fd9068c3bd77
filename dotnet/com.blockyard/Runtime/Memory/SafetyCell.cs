using System;

namespace Blockyard.Memory
{
    /// <summary>A counter that identifies a life, and one of its changes. A copy of the first is out of date once that
    /// life has ended.</summary>
    /// <remarks>
    /// Cells lie in unmanaged memory that is never freed, so an old copy of a container can always read its cell. A
    /// reused cell continues to count. Any thread; taking and giving back use a lock.
    /// </remarks>
    internal static unsafe class SafetyCell
    {
        private const int Shift = 10;
        private const int CellsPerBlock = 1 << Shift;

        private static readonly object Gate = new object();
        private static uint*[] blocks = new uint*[16];
        private static int blockCount;
        private static int[] free = new int[CellsPerBlock];
        private static int freeCount;

        static SafetyCell()
        {
            // Cell 0 is that of containers that were never created: it is taken for ever, and their life is 0.
            Take();
        }

        /// <summary>The current life of a cell; never 0.</summary>
        internal static ref uint LifeOf(int cell) => ref blocks[cell >> Shift][2 * (cell & (CellsPerBlock - 1))];

        /// <summary>How often what lives in a cell has changed.</summary>
        internal static ref uint ChangesOf(int cell) =>
            ref blocks[cell >> Shift][(2 * (cell & (CellsPerBlock - 1))) + 1];

        internal static int Take()
        {
            lock (Gate)
            {
                if (freeCount == 0)
                {
                    AddBlock();
                }

                return free[--freeCount];
            }
        }

        /// <summary>Ends the current life and makes the cell available again.</summary>
        internal static void Give(int cell)
        {
            lock (Gate)
            {
                ref uint life = ref LifeOf(cell);
                life = life == uint.MaxValue ? 1 : life + 1;
                if (freeCount == free.Length)
                {
                    Array.Resize(ref free, freeCount * 2);
                }

                free[freeCount++] = cell;
            }
        }

        private static void AddBlock()
        {
            uint* block = (uint*)RawMemory.Allocate(CellsPerBlock * 2 * sizeof(uint));
            if (blockCount == blocks.Length)
            {
                // A new array, because readers take no lock.
                uint*[] larger = new uint*[blockCount * 2];
                Array.Copy(blocks, larger, blockCount);
                blocks = larger;
            }

            blocks[blockCount] = block;
            for (int i = CellsPerBlock - 1; i >= 0; i--)
            {
                block[2 * i] = 1;
                block[(2 * i) + 1] = 0;
                free[freeCount++] = (blockCount << Shift) + i;
            }

            blockCount++;
        }
    }
}
