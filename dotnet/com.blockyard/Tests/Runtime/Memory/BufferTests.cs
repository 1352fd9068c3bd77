using System;
using System.Buffers;
#if NET8_0_OR_GREATER
using System.Text.Json;
#endif
using System.Threading.Tasks;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>The runtime's interfaces for buffers, on unmanaged memory.</summary>
    [TestFixture]
    public unsafe class BufferTests
    {
        [TearDown]
        public void EndFrame() => FrameMemory.EndThreadFrame();

        [Test]
        public void a_span_of_temp_needs_no_unsafe_code()
        {
            Span<double> numbers = UnmanagedMemory.MallocSpan<double>(100, Lifetime.Temp);
            numbers.Fill(2);
            Span<double> others = UnmanagedMemory.MallocSpan<double>(100, Lifetime.TempJob);
            numbers.CopyTo(others);
            Assert.AreEqual(2.0, others[99]);
            UnmanagedMemory.Free(others, Lifetime.TempJob);
            UnmanagedMemory.Free(UnmanagedMemory.MallocSpan<byte>(0, Lifetime.TempJob), Lifetime.TempJob);
            Assert.Throws<ArgumentOutOfRangeException>(() => UnmanagedMemory.MallocSpan<int>(-1, Lifetime.Temp));
        }

        [TestCase(Lifetime.Temp)]
        [TestCase(Lifetime.TempJob)]
        [TestCase(Lifetime.Persistent)]
        public void an_owner_shows_its_memory_and_pins_it_in_place(Lifetime lifetime)
        {
            UnmanagedMemoryOwner<int> owner = new UnmanagedMemoryOwner<int>(10, lifetime);
            IMemoryOwner<int> asInterface = owner;
            Memory<int> memory = asInterface.Memory;
            Assert.AreEqual(10, memory.Length);
            memory.Span[9] = 9;
            Assert.AreEqual(9, owner.GetSpan()[9]);
            using (MemoryHandle pinned = memory.Slice(9).Pin())
            {
                Assert.AreEqual(9, *(int*)pinned.Pointer);
            }

            Assert.Throws<ArgumentOutOfRangeException>(() => owner.Pin(11));
            asInterface.Dispose();
            asInterface.Dispose();
            Assert.Throws<ObjectDisposedException>(() => _ = memory.Span.Length);
        }

        [Test]
        public void the_memory_of_an_ended_frame_is_caught()
        {
            ChecksTests.Need();
            Memory<int> memory = new UnmanagedMemoryOwner<int>(10, Lifetime.Temp).Memory;
            FrameMemory.EndThreadFrame();
            Assert.Throws<ObjectDisposedException>(() => _ = memory.Span.Length);
        }

        [TestCase(Lifetime.Temp, 1)]
        [TestCase(Lifetime.Persistent, 2)]
        public void a_writer_agrees_with_the_runtime_s(Lifetime lifetime, int seed)
        {
            Random random = new Random(seed);
            ArrayBufferWriter<byte> model = new ArrayBufferWriter<byte>();
            using UnmanagedBufferWriter<byte> writer = new UnmanagedBufferWriter<byte>(0, lifetime);
            for (int step = 0; step < 500; step++)
            {
                byte[] bytes = new byte[random.Next(200)];
                random.NextBytes(bytes);
                model.Write(bytes);
                if (random.Next(2) == 0)
                {
                    writer.Write(bytes);
                }
                else
                {
                    Memory<byte> room = writer.GetMemory(bytes.Length);
                    bytes.CopyTo(room);
                    writer.Advance(bytes.Length);
                }
            }

            Assert.AreEqual(model.WrittenCount, writer.WrittenCount);
            Assert.IsTrue(writer.WrittenSpan.SequenceEqual(model.WrittenSpan));
            Assert.IsTrue(writer.WrittenMemory.Span.SequenceEqual(model.WrittenSpan));
            Assert.That(writer.GetSpan(100000).Length, Is.GreaterThanOrEqualTo(100000));
            Assert.That(writer.GetSpan().Length, Is.GreaterThan(0));
            Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(writer.Capacity));
            Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(-1));
            Assert.Throws<ArgumentOutOfRangeException>(() => writer.GetSpan(-1));
            writer.Clear();
            Assert.AreEqual(0, writer.WrittenCount);
        }

        [Test]
        public void a_writer_lives_through_frames_of_temp_without_garbage()
        {
            using (new CapturedLeaks(LeakMode.Off))
            {
                UnmanagedBufferWriter<byte> writer = new UnmanagedBufferWriter<byte>(16, Lifetime.Temp);
                byte[] bytes = new byte[1000];
                AllocationAssert.Zero(
                    () =>
                    {
                        FrameMemory.EndThreadFrame();
                        writer.Restart(16);
                        writer.Write(bytes);
                    },
                    warmUps: 3);
                Assert.AreEqual(bytes.Length, writer.WrittenCount);
            }
        }

        [Test]
        public void a_writer_of_an_ended_frame_may_be_disposed_and_frees_nothing_of_the_next() =>
            FreshThread.OnFreshThread(() =>
            {
                UnmanagedBufferWriter<byte> writer = new UnmanagedBufferWriter<byte>(64, Lifetime.Temp);
                FrameMemory.EndThreadFrame();
                UnmanagedMemory.Malloc(16, 8, Lifetime.Temp);
                void* block = UnmanagedMemory.Malloc(64, 8, Lifetime.Temp);
                writer.Dispose();
                writer.Dispose();
                Assert.IsFalse(block == UnmanagedMemory.Malloc(64, 8, Lifetime.Temp));
            });

        [TestCase(Lifetime.Temp)]
        [TestCase(Lifetime.Persistent)]
        public void a_writer_throws_between_its_disposal_and_a_restart(Lifetime lifetime)
        {
            UnmanagedBufferWriter<byte> writer = new UnmanagedBufferWriter<byte>(10, lifetime);
            writer.Dispose();
            Action[] uses =
            {
                () => _ = writer.WrittenCount, () => _ = writer.WrittenSpan.Length, () => _ = writer.WrittenMemory,
                () => _ = writer.Capacity, () => writer.GetSpan(1), () => writer.GetMemory(1), () => writer.Advance(0),
                () => writer.Clear(),
            };
            foreach (Action use in uses)
            {
                Assert.Throws<ObjectDisposedException>(() => use());
            }

            writer.Restart(10);
            Assert.AreEqual(0, writer.WrittenCount);
            writer.Dispose();
        }

#if NET8_0_OR_GREATER
        [Test]
        public void Json_is_written_into_temp_without_a_copy()
        {
            UnmanagedBufferWriter<byte> buffer = new UnmanagedBufferWriter<byte>(64, Lifetime.Temp);
            using (Utf8JsonWriter json = new Utf8JsonWriter(buffer))
            {
                JsonSerializer.Serialize(json, new { Name = "temp", Numbers = new[] { 1, 2, 3 } });
            }

            Assert.AreEqual(
                "{\"Name\":\"temp\",\"Numbers\":[1,2,3]}", System.Text.Encoding.UTF8.GetString(buffer.WrittenSpan));
            void* lastOfTemp = UnmanagedMemory.Malloc(1, 1, Lifetime.Temp);
            fixed (byte* written = buffer.WrittenSpan)
            {
                Assert.That((long)lastOfTemp - (long)written, Is.InRange(buffer.WrittenCount, buffer.Capacity + 1));
            }

            Utf8JsonReader reader = new Utf8JsonReader(buffer.WrittenSpan);
            Assert.IsTrue(reader.Read() && reader.TokenType == JsonTokenType.StartObject);
        }
#endif

        [Test]
        public void a_pool_gives_a_returned_buffer_again_and_catches_its_former_renter()
        {
            using UnmanagedMemoryPool pool = new UnmanagedMemoryPool();
            IMemoryOwner<byte> first = pool.Rent();
            Assert.AreEqual(4096, first.Memory.Length);
            Memory<byte> kept = first.Memory;
            IMemoryOwner<byte> other = pool.Rent(4097);
            Assert.AreEqual(8192, other.Memory.Length);
            first.Dispose();
            Assert.Throws<ObjectDisposedException>(() => _ = kept.Span.Length);
            IMemoryOwner<byte> second = pool.Rent(3000);
            byte* block = (byte*)second.Memory.Pin().Pointer;
            other.Dispose();
            other.Dispose();
            IMemoryOwner<byte> third = pool.Rent(5000);
            Assert.AreNotSame(third, pool.Rent(5000), "a second return does nothing");
            if (Checks.AreOn)
            {
                Assert.Throws<ObjectDisposedException>(() => _ = kept.Span.Length, "also when it is lent again");
                first.Dispose();
                second.Memory.Span[0] = 7;
                Assert.IsFalse(block == (byte*)pool.Rent(3000).Memory.Pin().Pointer);
            }
            else
            {
                Assert.AreSame(first, second);
                Assert.AreSame(other, third);
            }

            Assert.AreEqual(256, pool.Rent(0).Memory.Length);
            Assert.Throws<ArgumentOutOfRangeException>(() => pool.Rent(-2));
            Assert.Throws<ArgumentOutOfRangeException>(() => pool.Rent(int.MaxValue));
        }

        [Test]
        public void a_pool_s_buffers_are_freed_with_it_or_when_they_come_back()
        {
            long before = ThreadMemory.TotalsOfAll().PersistentBytes;
            UnmanagedMemoryPool pool = new UnmanagedMemoryPool();
            IMemoryOwner<byte> late = pool.Rent(1000);
            pool.Rent(1000).Dispose();
            IMemoryOwner<byte>[] many = new IMemoryOwner<byte>[UnmanagedMemoryPool.Kept + 1];
            for (int i = 0; i < many.Length; i++)
            {
                many[i] = pool.Rent(2000);
            }

            foreach (IMemoryOwner<byte> one in many)
            {
                one.Dispose();
            }

            Assert.AreEqual(
                before + 1024 + 1024 + (2048 * UnmanagedMemoryPool.Kept), ThreadMemory.TotalsOfAll().PersistentBytes);
            pool.Dispose();
            Assert.Throws<ObjectDisposedException>(() => pool.Rent());
            Assert.AreEqual(before + 1024, ThreadMemory.TotalsOfAll().PersistentBytes);
            late.Dispose();
            Assert.AreEqual(before, ThreadMemory.TotalsOfAll().PersistentBytes);
        }

        [Test]
        public void threads_that_share_a_pool_never_share_a_buffer()
        {
            using UnmanagedMemoryPool pool = new UnmanagedMemoryPool();
            Parallel.For(0, 4, thread =>
            {
                for (int i = 0; i < 5000; i++)
                {
                    using IMemoryOwner<byte> buffer = pool.Rent(256 << (i % 3));
                    buffer.Memory.Span.Fill((byte)thread);
                    Assert.IsTrue(buffer.Memory.Span[i % 256] == thread);
                }
            });
        }

        [Test]
        public void a_region_of_a_job_gives_aligned_blocks_until_it_is_full()
        {
            Span<byte> memory = UnmanagedMemory.MallocSpan<byte>(1024, Lifetime.TempJob);
            fixed (byte* start = memory)
            {
                BumpRegion region = new BumpRegion(start, 1024);
                byte* one = (byte*)region.TryAllocate(1, 1);
                Assert.IsTrue(one == start);
                Ptr<long> items = region.TryAllocate<long>(10);
                Assert.AreEqual(0UL, (ulong)items.Address % 16);
                Assert.IsTrue((byte*)items.Address > one);
                long left = region.BytesLeft;
                Assert.IsTrue(region.TryAllocate(left + 1, 1) == null);
                Assert.IsTrue(region.TryAllocate(-1, 1) == null);
                Assert.AreEqual(left, region.BytesLeft);
                Assert.IsTrue(region.TryAllocate(left, 1) != null);
                Assert.IsTrue(region.TryAllocate<byte>(1).IsNull);
                Assert.IsTrue(default(BumpRegion).TryAllocate(1, 1) == null);
                Assert.IsTrue(region.TryAllocate(0, 1) != null);
            }

            UnmanagedMemory.Free(memory, Lifetime.TempJob);
        }
    }
}
