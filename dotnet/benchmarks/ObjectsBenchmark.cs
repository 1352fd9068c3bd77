using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using Blockyard.Memory;

namespace Blockyard.Benchmarks
{
    /// <summary>The table of the article: creates a number of items and adds each to a list.</summary>
    internal static unsafe class ObjectsBenchmark
    {
        /// <summary>A suffix of a kind: the same without huge pages.</summary>
        private const string InSmallPages = "-in-small-pages";

        /// <summary>A suffix of a kind: the same in small pages that are not copied into place.</summary>
        private const string ByFaults = "-by-faults";

        /// <summary>A suffix of a kind: nothing is written to the items, as in the article's own test.</summary>
        private const string Untouched = "-untouched";

        internal static void Run(string kind, int count)
        {
            bool touch = !kind.EndsWith(Untouched, StringComparison.Ordinal);
            kind = touch ? kind : kind.Substring(0, kind.Length - Untouched.Length);
            if (kind.EndsWith(InSmallPages, StringComparison.Ordinal))
            {
                kind = kind.Substring(0, kind.Length - InSmallPages.Length);
                UnmanagedMemory.HugePages = false;
            }

            if (kind.EndsWith(ByFaults, StringComparison.Ordinal))
            {
                kind = kind.Substring(0, kind.Length - ByFaults.Length);
                UnmanagedMemory.HugePages = false;
                Environment.SetEnvironmentVariable("BLOCKYARD_USERFAULTFD", "0");
            }

            ProcessCost cost = new ProcessCost();
            object keep = Make(kind, count, touch);
            cost.Print();
            GC.KeepAlive(keep);
        }

        private static object Make(string kind, int count, bool touch)
        {
            switch (kind)
            {
                case "class":
                    return Classes(new List<EntityClass>(), count);
                case "class-packed":
                    List<EntityPackedClass> packedClasses = new List<EntityPackedClass>();
                    for (int i = 0; i < count; i++)
                    {
                        packedClasses.Add(new EntityPackedClass { Id = (ulong)i });
                    }

                    return packedClasses;
                case "class-presized":
                    return Classes(new List<EntityClass>(count), count);
                case "struct":
                    return Structs(new List<EntityStruct>(), count);
                case "struct-presized":
                    return Structs(new List<EntityStruct>(count), count);
                case "struct-packed":
                    return Structs(new List<EntityPacked>(), count);
                case "boxed":
                    return Boxed<EntityStruct>(count);
                case "boxed-packed":
                    return Boxed<EntityPacked>(count);
                case "unmanaged":
                    return Unmanaged(new List<Ptr<EntityStruct>>(), count, touch);
                case "unmanaged-unzeroed":
                    return Unmanaged(new List<Ptr<EntityStruct>>(), count, touch, zeroed: false);
                case "unmanaged-packed":
                    return Unmanaged(new List<Ptr<EntityPacked>>(), count);
                case "unmanaged-presized":
                    return Unmanaged(new List<Ptr<EntityStruct>>(count), count);
                case "list-alone":
                    return PointersAlone(new List<IntPtr>(), count);
                case "list-alone-presized":
                    return PointersAlone(new List<IntPtr>(count), count);
                case "unmanaged-pointers":
                    return Pointers<EntityStruct>(count);
                case "chunked":
                    return Chunked<EntityStruct>(count);
                case "chunked-packed":
                    return Chunked<EntityPacked>(count);
                case "handles":
                    UnmanagedAllocator<EntityStruct> named = new UnmanagedAllocator<EntityStruct>();
                    for (int i = 0; i < count; i++)
                    {
                        named.Get(named.AllocateHandle()).Id = (ulong)i;
                    }

                    return named;
                case "wrapped":
                    return Wrapped(count, touch, zeroed: true);
                case "wrapped-unzeroed":
                    return Wrapped(count, touch, zeroed: false);
                case "article":
                    return Article(count, touch);
                default:
                    throw new ArgumentException("No kind of object is called " + kind + ".");
            }
        }

        private static object Classes(List<EntityClass> items, int count)
        {
            for (int i = 0; i < count; i++)
            {
                items.Add(new EntityClass { Id = (ulong)i });
            }

            return items;
        }

        private static object Structs<T>(List<T> items, int count)
            where T : struct, IEntity
        {
            for (int i = 0; i < count; i++)
            {
                T item = default;
                item.Id = (ulong)i;
                items.Add(item);
            }

            return items;
        }

        private static object Boxed<T>(int count)
            where T : struct, IEntity
        {
            List<IEntity> items = new List<IEntity>();
            for (int i = 0; i < count; i++)
            {
                T item = default;
                item.Id = (ulong)i;
                items.Add(item);
            }

            return items;
        }

        private static object Unmanaged<T>(List<Ptr<T>> items, int count, bool touch = true, bool zeroed = true)
            where T : unmanaged, IEntity
        {
            UnmanagedAllocator<T> allocator = new UnmanagedAllocator<T>(zeroed: zeroed);
            for (int i = 0; i < count; i++)
            {
                Ptr<T> item = allocator.AllocatePtr();
                if (touch)
                {
                    item.Value.Id = (ulong)i;
                }

                items.Add(item);
            }

            return (allocator, items);
        }

        private static object Wrapped(int count, bool touch, bool zeroed)
        {
            WrappedAllocator<EntityWrapper> allocator = new WrappedAllocator<EntityWrapper>(
                sizeof(EntityStruct), pointer => new EntityWrapper(pointer), zeroed: zeroed);
            List<EntityWrapper> items = new List<EntityWrapper>();
            for (int i = 0; i < count; i++)
            {
                EntityWrapper item = allocator.Allocate();
                if (touch)
                {
                    item.Id = (ulong)i;
                }

                items.Add(item);
            }

            return (allocator, items);
        }

        private static object Article(int count, bool touch)
        {
            ArticleAllocator<EntityWrapper> allocator = new ArticleAllocator<EntityWrapper>(
                sizeof(EntityStruct), pointer => new EntityWrapper(pointer));
            List<EntityWrapper> items = new List<EntityWrapper>();
            for (int i = 0; i < count; i++)
            {
                EntityWrapper item = allocator.Allocate();
                if (touch)
                {
                    item.Id = (ulong)i;
                }

                items.Add(item);
            }

            return (allocator, items);
        }

        /// <summary>No items: the cost of a list of pointers alone.</summary>
        private static object PointersAlone(List<IntPtr> items, int count)
        {
            for (int i = 0; i < count; i++)
            {
                items.Add((IntPtr)i);
            }

            return items;
        }

        /// <summary>A list of pointers outside the collected heap, which grows without copying.</summary>
        private static object Pointers<T>(int count)
            where T : unmanaged, IEntity
        {
            UnmanagedAllocator<T> allocator = new UnmanagedAllocator<T>();
            UnmanagedAllocator<Ptr<T>> pointers = new UnmanagedAllocator<Ptr<T>>();
            UnmanagedChunkedList<Ptr<T>> items = new UnmanagedChunkedList<Ptr<T>>(pointers.Source, chunkLength: 4096);
            for (int i = 0; i < count; i++)
            {
                Ptr<T> item = allocator.AllocatePtr();
                item.Value.Id = (ulong)i;
                items.Add(item);
            }

            return (allocator, pointers, items);
        }

        /// <summary>The list holds the items, which never move. There is no list of pointers.</summary>
        private static object Chunked<T>(int count)
            where T : unmanaged, IEntity
        {
            UnmanagedAllocator<T> allocator = new UnmanagedAllocator<T>();
            UnmanagedChunkedList<T> items = new UnmanagedChunkedList<T>(
                allocator.Source, chunkLength: 4096);
            for (int i = 0; i < count; i++)
            {
                items.Add().Id = (ulong)i;
            }

            return (allocator, items);
        }

        /// <summary>The design that the article describes: a list of blocks, and a call of the delegate per
        /// item.</summary>
        private sealed class ArticleAllocator<TWrapper>
        {
            private readonly List<IntPtr> blocks = new List<IntPtr>();
            private readonly Func<IntPtr, TWrapper> wrap;
            private readonly int typeSize;
            private readonly int blockSize;
            private IntPtr block;
            private int next;

            internal ArticleAllocator(int typeSize, Func<IntPtr, TWrapper> wrap, int blockSize = 32768)
            {
                this.typeSize = typeSize;
                this.wrap = wrap;
                this.blockSize = blockSize;
                next = blockSize;
            }

            internal TWrapper Allocate()
            {
                if (next == blockSize)
                {
                    block = Marshal.AllocHGlobal(typeSize * blockSize);
                    blocks.Add(block);
                    next = 0;
                }

                return wrap(IntPtr.Add(block, next++ * typeSize));
            }
        }
    }
}
