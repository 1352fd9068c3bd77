using System;
using System.Collections.Generic;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Every test runs on each lifetime and on an allocator.</summary>
    [TestFixture("Temp")]
    [TestFixture("TempJob")]
    [TestFixture("Persistent")]
    [TestFixture("Allocator")]
    public class ContainerTests
    {
        private readonly string kind;
        private UnmanagedAllocator<long>? allocator;
        private MemorySource source;

        public ContainerTests(string kind)
        {
            this.kind = kind;
        }

        [SetUp]
        public void Open()
        {
            FrameMemory.EndThreadFrame();
            if (kind == "Allocator")
            {
                allocator = new UnmanagedAllocator<long>(1000, zeroed: false);
                source = allocator.Source;
            }
            else
            {
                source = (Lifetime)Enum.Parse(typeof(Lifetime), kind);
            }
        }

        [TearDown]
        public void Close()
        {
            allocator?.Dispose();
            allocator = null;
            FrameMemory.EndThreadFrame();
        }

        [Test]
        public void an_array_holds_its_items()
        {
            UnmanagedArray<int> array = new UnmanagedArray<int>(1000, source);
            Assert.AreEqual(1000, array.Length);
            for (int i = 0; i < array.Length; i++)
            {
                Assert.AreEqual(0, array[i]);
                array[i] = i;
            }

            long sum = 0;
            foreach (int item in array)
            {
                sum += item;
            }

            Assert.AreEqual(999 * 1000 / 2, sum);
            UnmanagedArray<int> copy = new UnmanagedArray<int>(array.AsSpan().Slice(10, 5), source);
            Assert.AreEqual(new[] { 10, 11, 12, 13, 14 }, copy.AsSpan().ToArray());
            copy.Dispose();
            array.Dispose();
            array.Dispose();
            Assert.IsFalse(array.IsCreated);
        }

        [Test]
        public void a_list_takes_spans_inserts_resizes_and_copies_out()
        {
            UnmanagedList<int> list = new UnmanagedList<int>(new[] { 1, 2, 6 }, source);
            list.InsertRange(2, new[] { 3, 4, 5 });
            list.Insert(0, 0);
            list.InsertRange(7, new[] { 7 });
            list.InsertRange(3, ReadOnlySpan<int>.Empty);
            Assert.AreEqual(new[] { 0, 1, 2, 3, 4, 5, 6, 7 }, list.ToArray());
            list.Resize(2);
            list.Resize(5);
            int[] copy = { 9, 9, 9, 9, 9, 9 };
            list.CopyTo(copy);
            Assert.AreEqual(new[] { 0, 1, 0, 0, 0, 9 }, copy);
            Assert.Throws<ArgumentException>(() => list.CopyTo(new int[4]));
            list.Resize(100);
            Assert.AreEqual(100, list.Count);
            Assert.AreEqual(0, list[99]);
            list.Dispose();
        }

        [Test]
        public void a_chunked_list_takes_spans_and_copies_out()
        {
            UnmanagedChunkedList<int> list = new UnmanagedChunkedList<int>(source, 4);
            int[] items = new int[23];
            for (int i = 0; i < items.Length; i++)
            {
                items[i] = i;
            }

            list.AddRange(new ReadOnlySpan<int>(items, 0, 3));
            list.AddRange(new ReadOnlySpan<int>(items, 3, 20));
            list.AddRange(ReadOnlySpan<int>.Empty);
            list.Add(23);
            Assert.AreEqual(24, list.Count);
            Assert.AreEqual(23, list.ToArray()[23]);
            CollectionAssert.AreEqual(items, new ArraySegment<int>(list.ToArray(), 0, 23));
            Assert.Throws<ArgumentException>(() => list.CopyTo(new int[23]));
            list.Dispose();
        }

        [Test]
        public void a_map_has_keys_values_and_an_addition_that_refuses_a_second_key()
        {
            UnmanagedHashMap<long, int> map = new UnmanagedHashMap<long, int>(0, source);
            Dictionary<long, int> expected = new Dictionary<long, int>();
            for (int i = 0; i < 100; i++)
            {
                map.Add(i * 7, i);
                expected.Add(i * 7, i);
            }

            Assert.Throws<ArgumentException>(() => map.Add(7, 5));
            Assert.AreEqual(1, map[7]);
            map.Remove(14);
            expected.Remove(14);
            CollectionAssert.AreEquivalent(expected.Keys, map.Keys.ToArray());
            CollectionAssert.AreEquivalent(expected.Values, map.Values.ToArray());
            CollectionAssert.AreEquivalent(expected, map.ToArray());
            foreach (ref int value in map.Values)
            {
                value = -value;
            }

            Assert.AreEqual(-3, map[21]);
            Assert.AreEqual(99, map.Keys.Count);
            Assert.AreEqual(99, map.Values.Count);
            Assert.Throws<ArgumentException>(() => map.Keys.CopyTo(new long[98]));
            Assert.Throws<ArgumentException>(() => map.Values.CopyTo(new int[98]));
            map.Dispose();
        }

        [Test]
        public void an_array_copies_out()
        {
            UnmanagedArray<int> array = new UnmanagedArray<int>(new[] { 1, 2, 3 }, source);
            Assert.AreEqual(new[] { 1, 2, 3 }, array.ToArray());
            int[] copy = new int[4];
            array.CopyTo(copy);
            Assert.AreEqual(new[] { 1, 2, 3, 0 }, copy);
            Assert.Throws<ArgumentException>(() => array.CopyTo(new int[2]));
            array.Dispose();
        }

        [Test]
        public unsafe void blocks_of_a_source_are_apart_and_can_be_freed()
        {
            long* first = (long*)source.Malloc(8, 8);
            long* second = (long*)source.Malloc(8, 64);
            *first = 1;
            *second = 2;
            Assert.AreEqual(1, *first);
            Assert.AreEqual(0, (long)second % 64);
            source.Free(second);
            source.Free(first);
            source.Free(null);
            Assert.Throws<ArgumentOutOfRangeException>(() => source.Malloc(-1, 8));
            Assert.Throws<ArgumentOutOfRangeException>(() => source.Malloc(8, 3));
        }

        [TestCase(11)]
        [TestCase(12)]
        public void a_list_agrees_with_the_runtime_s(int seed)
        {
            Random random = new Random(seed);
            List<int> model = new List<int>();
            UnmanagedList<int> list = new UnmanagedList<int>(random.Next(3), source);
            for (int step = 0; step < 3000; step++)
            {
                switch (random.Next(8))
                {
                    case 0 when model.Count > 0:
                        int at = random.Next(model.Count);
                        model.RemoveAt(at);
                        list.RemoveAt(at);
                        break;
                    case 1 when model.Count > 0:
                        int swap = random.Next(model.Count);
                        model[swap] = model[model.Count - 1];
                        model.RemoveAt(model.Count - 1);
                        list.RemoveAtSwapBack(swap);
                        break;
                    case 2:
                        int place = random.Next(model.Count + 1);
                        model.Insert(place, step);
                        list.Insert(place, step);
                        break;
                    case 3 when model.Count < 500:
                        model.AddRange(model.ToArray());
                        list.AddRange(list.AsSpan());
                        break;
                    case 4 when random.Next(100) == 0:
                        model.Clear();
                        list.Clear();
                        break;
                    case 5:
                        list.EnsureCapacity(random.Next(100));
                        break;
                    default:
                        model.Add(step);
                        list.Add(step);
                        break;
                }

                Assert.AreEqual(model.Count, list.Count);
                Assert.That(list.Capacity, Is.GreaterThanOrEqualTo(list.Count));
                if (step % 20 == 0)
                {
                    Assert.AreEqual(model.ToArray(), list.AsSpan().ToArray());
                }
            }

            list.Dispose();
        }

        [TestCase(21)]
        [TestCase(22)]
        public void a_hash_map_agrees_with_the_runtime_s(int seed)
        {
            Random random = new Random(seed);
            Dictionary<Key, long> model = new Dictionary<Key, long>();
            UnmanagedHashMap<Key, long> map = new UnmanagedHashMap<Key, long>(random.Next(3), source);
            for (int step = 0; step < 20000; step++)
            {
                // Few keys and many equal hashes, so that removal has to shift entries.
                Key key = new Key(random.Next(step < 10000 ? 60 : 2000));
                switch (random.Next(6))
                {
                    case 0:
                    case 1:
                        Assert.AreEqual(model.Remove(key), map.Remove(key));
                        break;
                    case 2:
                        map[key] = step;
                        model[key] = step;
                        break;
                    case 3 when step % 1000 == 0:
                        map.Clear();
                        model.Clear();
                        break;
                    case 4:
                        map.GetOrAdd(key, out bool added) += 1;
                        Assert.AreEqual(!model.ContainsKey(key), added);
                        model.TryGetValue(key, out long value);
                        model[key] = value + 1;
                        break;
                    default:
                        Assert.AreEqual(!model.ContainsKey(key), map.TryAdd(key, step));
                        if (!model.ContainsKey(key))
                        {
                            model.Add(key, step);
                        }

                        break;
                }

                Assert.AreEqual(model.Count, map.Count);
                Assert.AreEqual(model.TryGetValue(key, out long expected), map.TryGetValue(key, out long actual));
                Assert.AreEqual(expected, actual);
                if (step % 200 == 0)
                {
                    Assert.IsTrue(map.IsConsistent());
                    int seen = 0;
                    foreach (KeyValuePair<Key, long> pair in map)
                    {
                        Assert.AreEqual(model[pair.Key], pair.Value);
                        seen++;
                    }

                    Assert.AreEqual(model.Count, seen);
                }
            }

            Assert.IsFalse(map.ContainsKey(new Key(-1)));
            Assert.Throws<KeyNotFoundException>(() => _ = map[new Key(-1)]);
            map.Dispose();
        }

        [TestCase(1000)]
        [TestCase(600000)]
        public void a_hash_map_holds_as_many_as_it_was_made_for_without_growing(int count)
        {
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(count, source);
            int capacity = map.Capacity;
            for (int i = 0; i < count; i++)
            {
                map[i] = i;
            }

            Assert.AreEqual(capacity, map.Capacity);
            map.Dispose();
        }

        [Test]
        public void a_hash_map_that_gets_room_keeps_its_entries_and_reuses_holes()
        {
            UnmanagedHashMap<long, int> map = new UnmanagedHashMap<long, int>(0, source);
            for (int i = 0; i < 1000; i++)
            {
                map[i * 0x100000000L] = i;
                map[-i] = i;
            }

            for (int i = 1; i < 1000; i += 2)
            {
                Assert.IsTrue(map.Remove(-i));
            }

            map.EnsureCapacity(5000);
            Assert.IsTrue(map.IsConsistent());
            int capacity = map.Capacity;
            Assert.AreEqual(1499, map.Count);
            while (map.Count < capacity)
            {
                map[1_000_000 + map.Count] = 1;
            }

            Assert.AreEqual(capacity, map.Capacity);
            Assert.IsTrue(map.IsConsistent());
            Assert.AreEqual(999, map[999 * 0x100000000L]);
            Assert.AreEqual(998, map[-998]);
            Assert.IsFalse(map.ContainsKey(-999));
            map.Dispose();
        }

        [Test]
        public void a_hash_map_of_tiny_entries_agrees_with_the_runtime_s()
        {
            Random random = new Random(5);
            Dictionary<byte, byte> model = new Dictionary<byte, byte>();
            UnmanagedHashMap<byte, byte> map = new UnmanagedHashMap<byte, byte>(0, source);
            for (int step = 0; step < 5000; step++)
            {
                byte key = (byte)random.Next(256);
                if (random.Next(2) == 0)
                {
                    model[key] = (byte)step;
                    map[key] = (byte)step;
                }
                else
                {
                    Assert.AreEqual(model.Remove(key), map.Remove(key));
                }
            }

            Assert.IsTrue(map.IsConsistent());
            foreach (KeyValuePair<byte, byte> pair in map)
            {
                Assert.AreEqual(model[pair.Key], pair.Value);
            }

            Assert.AreEqual(model.Count, map.Count);
            map.Dispose();
        }

        [Test]
        public void a_chunked_list_never_moves_an_item()
        {
            UnmanagedChunkedList<int> list = new UnmanagedChunkedList<int>(source, 100);
            Assert.AreEqual(128, list.ChunkLength);
            ref int first = ref list.Add(0);
            for (int i = 1; i < 10000; i++)
            {
                list.Add(i);
            }

            first = 77;
            Assert.AreEqual(77, list[0]);
            Assert.AreEqual(10000, list.Count);
            Assert.AreEqual(79, list.ChunkCount);
            Assert.AreEqual(10000 % 128, list.GetChunk(78).Length);
            int expected = 77;
            int at = 0;
            foreach (ref int item in list)
            {
                Assert.AreEqual(expected, item);
                expected = ++at;
            }

            list.Clear();
            Assert.AreEqual(0, list.Count);
            list.Add(5);
            Assert.AreEqual(77, first == 5 ? 77 : 0, "the chunks are used again");
            list.Dispose();
        }

        [Test]
        public void containers_hold_containers()
        {
            UnmanagedList<UnmanagedList<int>> outer = new UnmanagedList<UnmanagedList<int>>(0, source);
            for (int i = 0; i < 10; i++)
            {
                UnmanagedList<int> inner = new UnmanagedList<int>(0, source);
                inner.Add(i);
                outer.Add(inner);
            }

            outer[3].Add(33);
            Assert.AreEqual(2, outer[3].Count);
            Assert.AreEqual(33, outer[3][1]);
            foreach (ref UnmanagedList<int> inner in outer.AsSpan())
            {
                inner.Dispose();
            }

            outer.Dispose();
        }

        [Test]
        public void using_containers_allocates_nothing_on_the_collected_heap()
        {
            using (new CapturedLeaks(LeakMode.Off))
            {
                MemorySource where = source;
                AllocationAssert.Zero(
                    () =>
                    {
                        UnmanagedArray<int> array = new UnmanagedArray<int>(100, where);
                        UnmanagedList<int> list = new UnmanagedList<int>(0, where);
                        UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(0, where);
                        UnmanagedChunkedList<int> chunks = new UnmanagedChunkedList<int>(where, 16);
                        for (int i = 0; i < 100; i++)
                        {
                            array[i] = i;
                            list.Add(array[i]);
                            map[i] = list[i];
                            chunks.Add(map[i]);
                        }

                        chunks.Dispose();
                        map.Dispose();
                        list.Dispose();
                        array.Dispose();
                        allocator?.Reset();
                        FrameMemory.EndThreadFrame();
                    },
                    warmUps: 3);
            }
        }

        [Test]
        public void bad_arguments_are_named()
        {
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedArray<int>(-1, source));
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedList<int>(-1, source));
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedHashMap<int, int>(-1, source));
            Assert.Throws<ArgumentOutOfRangeException>(() => new UnmanagedChunkedList<int>(source, 0));
        }

        [Test]
        public unsafe void a_container_takes_little_more_than_a_pointer_and_its_source()
        {
            Assert.AreEqual(3 * sizeof(void*), sizeof(UnmanagedList<int>));
            Assert.AreEqual(4 * sizeof(void*), sizeof(UnmanagedArray<int>));
        }

        [Test]
        public void without_checks_no_index_is_checked()
        {
            if (Checks.AreOn)
            {
                Assert.Ignore("this process runs with checks");
            }

            UnmanagedList<int> list = new UnmanagedList<int>(10, source);
            list.Add(1);
            Assert.DoesNotThrow(() => list[9] = 3, "within the capacity, beyond the count");
            list.Dispose();
        }

        [Test]
        public void an_index_out_of_range_is_caught()
        {
            ChecksTests.Need();
            UnmanagedArray<int> array = new UnmanagedArray<int>(3, source);
            Assert.Throws<IndexOutOfRangeException>(() => array[3] = 1);
            Assert.Throws<IndexOutOfRangeException>(() => array[-1] = 1);
            UnmanagedList<int> list = new UnmanagedList<int>(10, source);
            Assert.Throws<IndexOutOfRangeException>(() => list[0] = 1);
            Assert.Throws<IndexOutOfRangeException>(() => list.RemoveAt(0));
            Assert.Throws<IndexOutOfRangeException>(() => list.Insert(1, 1));
            UnmanagedChunkedList<int> chunks = new UnmanagedChunkedList<int>(source);
            Assert.Throws<IndexOutOfRangeException>(() => chunks[0] = 1);
            Assert.Throws<IndexOutOfRangeException>(() => chunks.GetChunk(0));
            chunks.Dispose();
            list.Dispose();
            array.Dispose();
        }

        [Test]
        public void use_after_the_memory_is_gone_is_caught_in_every_copy()
        {
            ChecksTests.Need();
            UnmanagedList<int> list = new UnmanagedList<int>(10, source);
            list.Add(1);
            UnmanagedList<int> copy = list;
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(10, source);
            UnmanagedHashMap<int, int> mapCopy = map;
            if (kind == "Temp")
            {
                FrameMemory.EndThreadFrame();
            }
            else if (kind == "Allocator")
            {
                allocator!.Reset();
            }
            else
            {
                list.Dispose();
                map.Dispose();
            }

            Assert.Throws<ObjectDisposedException>(() => copy.Add(2));
            Assert.Throws<ObjectDisposedException>(() => _ = copy[0]);
            Assert.Throws<ObjectDisposedException>(() => copy.Dispose());
            Assert.Throws<ObjectDisposedException>(() => mapCopy.ContainsKey(1));
            Assert.Throws<ObjectDisposedException>(() => _ = default(UnmanagedList<int>).Count);
        }

        [Test]
        public void use_after_disposal_is_caught_in_every_copy()
        {
            ChecksTests.Need();
            UnmanagedArray<int> array = new UnmanagedArray<int>(10, source);
            UnmanagedArray<int> arrayCopy = array;
            UnmanagedList<int> list = new UnmanagedList<int>(10, source);
            UnmanagedList<int> listCopy = list;
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(10, source);
            UnmanagedHashMap<int, int> mapCopy = map;
            UnmanagedChunkedList<int> chunks = new UnmanagedChunkedList<int>(source);
            UnmanagedChunkedList<int> chunksCopy = chunks;
            UnmanagedList<int> other = new UnmanagedList<int>(10, source);
            array.Dispose();
            list.Dispose();
            map.Dispose();
            chunks.Dispose();
            Assert.Throws<ObjectDisposedException>(() => arrayCopy[0] = 1);
            Assert.Throws<ObjectDisposedException>(() => listCopy.Add(1));
            Assert.Throws<ObjectDisposedException>(() => mapCopy.TryAdd(1, 1));
            Assert.Throws<ObjectDisposedException>(() => chunksCopy.Add(1));
            Assert.Throws<ObjectDisposedException>(() => chunksCopy.GetEnumerator());
            Assert.Throws<ObjectDisposedException>(() => listCopy.Dispose());
            other.Add(1);
            Assert.AreEqual(1, other.Count, "a container that was not disposed still works");
            UnmanagedList<int> later = new UnmanagedList<int>(10, source);
            later.Add(1);
            Assert.Throws<ObjectDisposedException>(() => listCopy.Add(1), "also when its place is used again");
            later.Dispose();
            other.Dispose();
        }

        [Test]
        public void random_use_of_copies_is_caught_exactly_when_their_memory_is_gone()
        {
            ChecksTests.Need();
            Random random = new Random(31);
            List<UnmanagedList<int>> live = new List<UnmanagedList<int>>();
            List<UnmanagedList<int>> gone = new List<UnmanagedList<int>>();
            for (int step = 0; step < 3000; step++)
            {
                if (live.Count == 0 || random.Next(2) == 0)
                {
                    live.Add(new UnmanagedList<int>(1, source));
                }
                else
                {
                    int which = random.Next(live.Count);
                    UnmanagedList<int> list = live[which];
                    live.RemoveAt(which);
                    gone.Add(list);
                    list.Dispose();
                }

                if (random.Next(300) == 0 && (kind == "Temp" || allocator != null))
                {
                    FrameMemory.EndThreadFrame();
                    allocator?.Reset();
                    gone.AddRange(live);
                    live.Clear();
                }

                if (live.Count > 0)
                {
                    Assert.AreEqual(0, live[random.Next(live.Count)].Count);
                }

                if (gone.Count > 0)
                {
                    UnmanagedList<int> list = gone[random.Next(gone.Count)];
                    Assert.Throws<ObjectDisposedException>(() => _ = list.Count);
                }
            }

            foreach (UnmanagedList<int> list in live)
            {
                list.Dispose();
            }
        }

        [Test]
        public void containers_that_took_memory_in_a_scope_are_caught_after_it()
        {
            ChecksTests.Need();
            if (allocator == null)
            {
                return;
            }

            UnmanagedList<int> before = new UnmanagedList<int>(1, source);
            UnmanagedHashMap<int, int> grown = new UnmanagedHashMap<int, int>(0, source);
            UnmanagedList<int> within = default;
            UnmanagedList<int> between = default;
            using (allocator.BeginScope())
            {
                using (allocator.BeginScope())
                {
                    within = new UnmanagedList<int>(1, source);
                }

                between = new UnmanagedList<int>(1, source);
                between.Add(1);
                before.Add(1);
                grown.TryAdd(1, 1);
                Assert.Throws<ObjectDisposedException>(() => within.Add(1));
                Assert.AreEqual(1, between.Count);
            }

            Assert.Throws<ObjectDisposedException>(() => between.Add(1));
            Assert.Throws<ObjectDisposedException>(() => grown.ContainsKey(1));
            before.Add(2);
            Assert.AreEqual(2, before[1], "it grows after the scope");
            allocator.Reset();
            Assert.Throws<ObjectDisposedException>(() => before.Add(1));
            new UnmanagedList<int>(1, source).Dispose();
        }

        [Test]
        public void a_container_that_could_not_grow_in_a_scope_outlives_it()
        {
            if (allocator == null)
            {
                return;
            }

            UnmanagedList<Huge> list = new UnmanagedList<Huge>(0, source);
            UnmanagedChunkedList<Huge> chunks = new UnmanagedChunkedList<Huge>(source, 1 << 30);
            using (allocator.BeginScope())
            {
                Assert.Throws<OutOfMemoryException>(() => list.EnsureCapacity(1 << 28));
                Assert.Throws<OutOfMemoryException>(() => chunks.Add());
            }

            Assert.AreEqual(0, list.Count + chunks.Count);
        }

        [Test]
        public void growth_of_a_container_in_temp_on_another_thread_is_caught()
        {
            ChecksTests.Need();
            if (kind != "Temp")
            {
                return;
            }

            UnmanagedList<int> list = new UnmanagedList<int>(0, source);
            UnmanagedChunkedList<int> chunks = new UnmanagedChunkedList<int>(source);
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(0, source);
            FreshThread.OnFreshThread(() =>
            {
                Assert.Throws<InvalidOperationException>(() => list.Add(1));
                Assert.Throws<InvalidOperationException>(() => chunks.Add(1));
                Assert.Throws<InvalidOperationException>(() => map.TryAdd(1, 1));
            });
            list.Add(1);
            chunks.Add(1);
            map.TryAdd(1, 1);
            Assert.AreEqual(3, list[0] + chunks[0] + map[1]);
        }

        [Test]
        public void a_map_that_changes_while_it_is_enumerated_is_caught()
        {
            ChecksTests.Need();
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(0, source);
            map.TryAdd(1, 1);
            UnmanagedHashMap<int, int>.Enumerator all = map.GetEnumerator();
            UnmanagedHashMap<int, int>.Enumerator others = map.GetEnumerator();
            Assert.IsTrue(all.MoveNext());
            map[1] = 2;
            Assert.IsFalse(all.MoveNext());
            map.TryAdd(2, 1);
            Assert.Throws<InvalidOperationException>(() => others.MoveNext());
            UnmanagedHashMap<int, int>.Enumerator late = map.GetEnumerator();
            map.Dispose();
            Assert.Throws<ObjectDisposedException>(() => late.MoveNext());
        }

        [Test]
        public void a_list_that_changes_while_it_is_enumerated_is_caught()
        {
            ChecksTests.Need();
            UnmanagedList<int> list = new UnmanagedList<int>(10, source);
            list.Add(1);
            Assert.Throws<InvalidOperationException>(() =>
            {
                foreach (int item in list)
                {
                    list.Add(item);
                }
            });
            UnmanagedList<int>.Enumerator all = list.GetEnumerator();
            list.RemoveAt(0);
            Assert.Throws<InvalidOperationException>(() => all.MoveNext());
            UnmanagedList<int>.Enumerator late = list.GetEnumerator();
            list.Dispose();
            Assert.Throws<ObjectDisposedException>(() => late.MoveNext());
        }

        [Test]
        public void a_change_that_keeps_the_count_is_caught_too()
        {
            ChecksTests.Need();
            UnmanagedList<int> list = new UnmanagedList<int>(10, source);
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(10, source);
            list.Add(1);
            map.TryAdd(1, 1);
            UnmanagedList<int>.Enumerator items = list.GetEnumerator();
            UnmanagedHashMap<int, int>.Enumerator entries = map.GetEnumerator();
            list.RemoveAt(0);
            list.Add(2);
            map.Clear();
            map.TryAdd(1, 1);
            Assert.Throws<InvalidOperationException>(() => items.MoveNext());
            Assert.Throws<InvalidOperationException>(() => entries.MoveNext());
        }

        [Test]
        public void room_for_a_negative_number_is_refused()
        {
            UnmanagedList<int> list = new UnmanagedList<int>(1, source);
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(1, source);
            Assert.Throws<ArgumentOutOfRangeException>(() => list.EnsureCapacity(-1));
            Assert.Throws<ArgumentOutOfRangeException>(() => map.EnsureCapacity(-1));
        }

        [Test]
        public void a_map_that_could_not_be_indexed_is_refused()
        {
            Assert.Throws<OutOfMemoryException>(() => new UnmanagedHashMap<int, int>(int.MaxValue, source));
            UnmanagedHashMap<int, int> map = new UnmanagedHashMap<int, int>(1, source);
            Assert.Throws<OutOfMemoryException>(() => map.EnsureCapacity(int.MaxValue));
            Assert.IsTrue(map.TryAdd(1, 1));
            map.Dispose();
        }

        [Test]
        public void an_allocator_that_is_gone_gives_no_memory()
        {
            if (allocator == null)
            {
                return;
            }

            UnmanagedList<int> list = new UnmanagedList<int>(0, source);
            allocator.Dispose();
            Assert.Throws<ObjectDisposedException>(() => new UnmanagedArray<int>(1, source));
            if (Checks.AreOn)
            {
                Assert.Throws<ObjectDisposedException>(() => list.Add(1));
            }
        }

        private unsafe struct Huge
        {
            internal fixed byte Bytes[1000 * 1000];
        }

        private readonly struct Key : IEquatable<Key>
        {
            private readonly int value;

            internal Key(int value)
            {
                this.value = value;
            }

            public bool Equals(Key other) => value == other.value;

            public override bool Equals(object? obj) => obj is Key other && Equals(other);

            public override int GetHashCode() => value % 17;
        }
    }
}
