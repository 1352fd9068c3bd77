using System;
using System.IO;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Persistent blocks on the native heap. Runs in its own process, because the heap must be chosen before
    /// the first block.</summary>
    [TestFixture]
    public unsafe class NativeHeapTests
    {
        [Test]
        public void persistent_blocks_come_from_the_native_heap_where_it_is_present()
        {
            if (!UnmanagedMemory.IsNativeHeapPresent)
            {
                Assert.Ignore("the native library was not found; build it and set BLOCKYARD_BUILD");
            }

            if (Environment.GetEnvironmentVariable("BLOCKYARD_TEST_NATIVE_HEAP") == null)
            {
                Assert.Ignore("runs in a process of its own: dotnet/run-tests starts it");
            }

            UnmanagedMemory.PersistentHeap = PersistentHeap.Native;
            for (int size = 0; size < 5000; size += 37)
            {
                for (int alignment = 1; alignment <= UnmanagedMemory.LargestAlignment; alignment *= 4)
                {
                    byte* block = (byte*)UnmanagedMemory.Malloc(size, alignment, Lifetime.Persistent);
                    Assert.AreEqual(0UL, (ulong)block % (ulong)alignment);
                    new Span<byte>(block, size).Fill(1);
                    UnmanagedMemory.Free(block, Lifetime.Persistent);
                }
            }

            UnmanagedList<int> list = new UnmanagedList<int>(0, Lifetime.Persistent);
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(0, Lifetime.Persistent);
            for (int i = 0; i < 100_000; i++)
            {
                list.Add(i);
                map[i] = i;
            }

            for (int i = 0; i < list.Count; i++)
            {
                Assert.IsTrue(list[i] == i && map[i] == i);
            }

            map.Dispose();
            list.Dispose();
            Assert.Throws<OutOfMemoryException>(() => UnmanagedMemory.Malloc(1L << 60, 16, Lifetime.Persistent));
            Assert.Throws<InvalidOperationException>(() => UnmanagedMemory.PersistentHeap = PersistentHeap.Runtime);
            StringAssert.Contains("libblockyard.so", File.ReadAllText("/proc/self/maps"));
        }

        [Test]
        public void the_native_heap_is_refused_where_it_is_not_present()
        {
            if (UnmanagedMemory.IsNativeHeapPresent)
            {
                Assert.Ignore("the native library is present");
            }

            UnmanagedMemory.Free(UnmanagedMemory.Malloc(1, 1, Lifetime.Persistent), Lifetime.Persistent);
            Assert.That(
                () => UnmanagedMemory.PersistentHeap = PersistentHeap.Native,
                Throws.InstanceOf<DllNotFoundException>().Or.InstanceOf<InvalidOperationException>());
            Assert.AreEqual(PersistentHeap.Runtime, UnmanagedMemory.PersistentHeap);
        }
    }
}
