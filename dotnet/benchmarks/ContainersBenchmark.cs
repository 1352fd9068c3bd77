using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using Blockyard.Memory;

namespace Blockyard.Benchmarks
{
    /// <summary>ns per operation of the containers and of the runtime's own, interleaved in one process.</summary>
    internal static class ContainersBenchmark
    {
        private const int ListItems = 10_000_000;

        /// <summary>Operations of a map per round, about.</summary>
        private const int Operations = 100_000;
        private const int WarmUpMilliseconds = 1000;
        private static int listItems;
        private static long sum;

        internal static void Run(int rounds)
        {
            listItems = 1000;
            WarmUp(GrowOurs, GrowTheirs);
            listItems = ListItems;
            Compare("grow_list", ListItems, 1, rounds * 2, GrowOurs, GrowTheirs);
            foreach (int entries in new[] { 1000, 1_000_000 })
            {
                Maps(entries, rounds);
            }

            Chunks(rounds);
            Access(rounds);
        }

        /// <summary>Calls two short ways until .NET has compiled their methods with full optimisation: after 30 calls,
        /// and again after 30 of the code that counts branches, each once it has compiled nothing new for 100
        /// ms.</summary>
        private static void WarmUp(Action ours, Action theirs)
        {
            Stopwatch warm = Stopwatch.StartNew();
            while (warm.ElapsedMilliseconds < WarmUpMilliseconds)
            {
                ours();
                theirs();
            }
        }

        /// <summary>Prints the medians of two ways, which alternate. The first round does not count.</summary>
        private static void Compare(string name, long items, int repeats, int rounds, Action ours, Action theirs)
        {
            Action[] ways = { ours, theirs };
            for (int round = -1; round < rounds; round++)
            {
                for (int i = 0; i < ways.Length; i++)
                {
                    int which = (i + round) & 1;
                    long start = ProcessCost.ThreadNanoseconds();
                    for (int repeat = 0; repeat < repeats; repeat++)
                    {
                        ways[which]();
                    }

                    if (round >= 0)
                    {
                        long took = ProcessCost.ThreadNanoseconds() - start;
                        Result.Add(name + (which == 0 ? "_ns" : "_runtime_ns"), took / ((double)items * repeats));
                    }
                }
            }
        }

        private static void GrowOurs()
        {
            UnmanagedList<long> list = new UnmanagedList<long>(0, Lifetime.Persistent);
            for (int i = 0; i < listItems; i++)
            {
                list.Add(i);
            }

            sum += list[listItems - 1];
            list.Dispose();
        }

        private static void GrowTheirs()
        {
            List<long> list = new List<long>();
            for (int i = 0; i < listItems; i++)
            {
                list.Add(i);
            }

            sum += list[listItems - 1];
        }

        private static void Maps(int entries, int rounds)
        {
            long[] keys = Keys(entries, 1);
            long[] misses = Keys(entries, 2);
            long[] shuffled = (long[])keys.Clone();
            Random random = new Random(3);
            for (int i = entries - 1; i > 0; i--)
            {
                int other = random.Next(i + 1);
                (shuffled[i], shuffled[other]) = (shuffled[other], shuffled[i]);
            }

            // Each operation is measured where it comes in the life of a map: fill, find, miss, empty.
            string[] names = { "insert", "find", "miss", "remove" };
            // A small map stays in the cache: it is used again and again, and found in often, as the clock has a price.
            // It comes first, and warms up for the large one too.
            int searches = Math.Max(1, Operations / entries / 10);
            int measured = rounds * (searches == 1 ? 2 : 100);
            OurMap ours = default;
            TheirMap theirs = default;
            Stopwatch warm = Stopwatch.StartNew();
            for (int round = -1; round < measured; round++)
            {
                round = warm.ElapsedMilliseconds < WarmUpMilliseconds ? -1 : round;
                for (int which = 0; which < 2; which++)
                {
                    bool isOurs = ((which + round) & 1) == 0;
                    for (int i = 0; i < names.Length; i++)
                    {
                        int repeats = i == 1 || i == 2 ? searches : 1;
                        long[] these = i == 0 ? keys : i == 2 ? misses : shuffled;
                        long start = ProcessCost.ThreadNanoseconds();
                        for (int repeat = 0; repeat < repeats; repeat++)
                        {
                            if (isOurs)
                            {
                                Use(i, ref ours, these);
                            }
                            else
                            {
                                Use(i, ref theirs, these);
                            }
                        }

                        if (round >= 0)
                        {
                            long took = ProcessCost.ThreadNanoseconds() - start;
                            Result.Add(
                                "map_" + entries + "_" + names[i] + (isOurs ? "_ns" : "_runtime_ns"),
                                took / ((double)entries * repeats));
                        }
                    }

                    if (isOurs)
                    {
                        ours.Map.Dispose();
                    }
                }
            }
        }

        /// <summary>What is measured of a map. The maps are structs, so each has its own code for
        /// <see cref="Use"/>.</summary>
        private interface IMap
        {
            void Create();

            void Add(long key, int value);

            int Find(long key);

            bool Remove(long key);
        }

        private static void Use<TMap>(int operation, ref TMap map, long[] keys)
            where TMap : struct, IMap
        {
            switch (operation)
            {
                case 0:
                    map.Create();
                    for (int i = 0; i < keys.Length; i++)
                    {
                        map.Add(keys[i], i);
                    }

                    break;
                case 3:
                    foreach (long key in keys)
                    {
                        sum += map.Remove(key) ? 1 : 0;
                    }

                    break;
                default:
                    foreach (long key in keys)
                    {
                        sum += map.Find(key);
                    }

                    break;
            }
        }

        private static long[] Keys(int count, int seed)
        {
            Random random = new Random(seed);
            byte[] bytes = new byte[sizeof(long)];
            long[] keys = new long[count];
            for (int i = 0; i < count; i++)
            {
                random.NextBytes(bytes);
                keys[i] = BitConverter.ToInt64(bytes, 0);
            }

            return keys;
        }

        private static void Chunks(int rounds)
        {
            const int Items = 100_000;
            UnmanagedChunkedList<long> list = new UnmanagedChunkedList<long>(Lifetime.Persistent);
            List<long> theirs = new List<long>();
            for (int i = 0; i < Items; i++)
            {
                list.Add(i);
                theirs.Add(i);
            }

            void Ours() => sum += Sum(list);

            void Theirs()
            {
                foreach (long item in theirs)
                {
                    sum += item;
                }
            }

            WarmUp(Ours, Theirs);
            Compare("chunked_foreach", Items, 5, rounds * 5, Ours, Theirs);
            list.Dispose();
        }

        /// <summary>Reads and writes every item: the article's list of pointers, and a chunked list, against an array
        /// of objects.</summary>
        private static void Access(int rounds)
        {
            const int Items = 1_000_000;
            EntityClass[] objects = new EntityClass[Items];
            using UnmanagedAllocator<EntityStruct> allocator = new UnmanagedAllocator<EntityStruct>();
            List<Ptr<EntityStruct>> pointers = new List<Ptr<EntityStruct>>();
            UnmanagedChunkedList<EntityStruct> chunked = new UnmanagedChunkedList<EntityStruct>(allocator.Source);
            for (int i = 0; i < Items; i++)
            {
                objects[i] = new EntityClass { Id = (ulong)i };
                pointers.Add(allocator.AllocatePtr());
                chunked.Add().Id = (ulong)i;
            }

            void Objects()
            {
                for (int i = 0; i < objects.Length; i++)
                {
                    objects[i].Id++;
                }
            }

            void Pointers()
            {
                for (int i = 0; i < pointers.Count; i++)
                {
                    pointers[i].Value.Id++;
                }
            }

            void Chunked()
            {
                foreach (ref EntityStruct item in chunked)
                {
                    item.Id++;
                }
            }

            WarmUp(Pointers, Objects);
            Compare("access_pointers", Items, 1, rounds * 5, Pointers, Objects);
            WarmUp(Chunked, Objects);
            Compare("access_chunked", Items, 1, rounds * 5, Chunked, Objects);
        }

        private static long Sum(UnmanagedChunkedList<long> list)
        {
            long total = 0;
            foreach (ref long item in list)
            {
                total += item;
            }

            return total;
        }

        private struct OurMap : IMap
        {
            internal UnmanagedHashMap<long, int> Map;

            public void Create() => Map = new UnmanagedHashMap<long, int>(0, Lifetime.Persistent);

            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public void Add(long key, int value) => Map.TryAdd(key, value);

            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public int Find(long key)
            {
                Map.TryGetValue(key, out int value);
                return value;
            }

            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public bool Remove(long key) => Map.Remove(key);
        }

        private struct TheirMap : IMap
        {
            private Dictionary<long, int> map;

            public void Create() => map = new Dictionary<long, int>();

            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public void Add(long key, int value) => map.TryAdd(key, value);

            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public int Find(long key)
            {
                map.TryGetValue(key, out int value);
                return value;
            }

            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public bool Remove(long key) => map.Remove(key);
        }
    }
}
