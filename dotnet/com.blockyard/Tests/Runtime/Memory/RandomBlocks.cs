using System;
using System.Collections.Generic;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Allocates and frees blocks at random, and checks their alignment and that each keeps its
    /// contents.</summary>
    internal static unsafe class RandomBlocks
    {
        internal delegate void* Allocate(int size, int alignment);

        internal delegate void Free(void* block);

        internal static void Check(int seed, Allocate allocate, Free free)
        {
            Random random = new Random(seed);
            List<(IntPtr Block, int Size, byte Mark)> live = new List<(IntPtr, int, byte)>();
            for (int i = 0; i < 3000; i++)
            {
                int size = random.Next(0, i % 50 == 0 ? 100000 : 300);
                int alignment = 1 << random.Next(0, 15);
                byte* block = (byte*)allocate(size, alignment);
                Assert.AreEqual(0UL, (ulong)block % (ulong)alignment);
                new Span<byte>(block, size).Fill((byte)i);
                live.Add(((IntPtr)block, size, (byte)i));
                if (random.Next(3) == 0)
                {
                    int which = random.Next(live.Count);
                    CheckAndFree(live[which], free);
                    live.RemoveAt(which);
                }
            }

            foreach ((IntPtr, int, byte) one in live)
            {
                CheckAndFree(one, free);
            }
        }

        private static void CheckAndFree((IntPtr Block, int Size, byte Mark) one, Free free)
        {
            Span<byte> bytes = new Span<byte>((void*)one.Block, one.Size);
            for (int i = 0; i < bytes.Length; i++)
            {
                if (bytes[i] != one.Mark)
                {
                    Assert.Fail("byte " + i + " of " + one.Size + " was overwritten");
                }
            }

            free((void*)one.Block);
        }
    }
}
