using System;
using System.Runtime.ConstrainedExecution;

namespace Blockyard.Memory
{
    /// <summary>Bump allocation from a growing stack of equal blocks: the core of the block allocators.</summary>
    /// <remarks>
    /// One owner, no lock. Taking memory is O(1) and calls the runtime once per block. A request larger than a block
    /// gets a block of its own size. <see cref="Rewind"/> keeps blocks, and they are used again in order. Overhead: 16
    /// bytes of table per block, and the end of a block that a larger request did not fit into. On Linux, blocks beyond
    /// the first 2 MiB are cut from slabs of <see cref="SlabMemory"/>. Each slab is as large as all before it, up to 64
    /// MiB. Pages of a slab come with their first use. If the owner wants zeros and its items were written so far,
    /// those of the next block are populated in advance (<see cref="SlabPages"/>), which costs less.
    /// </remarks>
    internal sealed unsafe class BlockStack : CriticalFinalizerObject
    {
        private const long LargestSlab = 64 * 1024 * 1024;
        private const long BlockBoundary = 64;

        private readonly long blockSize;
        private readonly int blockAlignment;
        private readonly bool zeroed;
        private Block[] blocks = new Block[4];
        private Slab[] slabs = Array.Empty<Slab>();
        private int slabCount;
        private byte* slabCursor;
        private byte* slabLimit;
        private byte* slabTaken;
        private byte* slabUsable;

        /// <summary>The last whole page of the newest block that was cut from a slab. It is never populated in advance,
        /// so it is present when the program wrote to the block.</summary>
        private byte* probe;
        private int count;
        private int current = -1;
        private long reserved;
        private long usedBefore;

        /// <param name="blockSize">Bytes per block.</param>
        /// <param name="blockAlignment">The alignment of blocks, in bytes.</param>
        /// <param name="zeroed">Whether the owner hands out zeroed memory, by <see cref="Clear"/>.</param>
        internal BlockStack(long blockSize, int blockAlignment, bool zeroed)
        {
            this.zeroed = zeroed;
            this.blockSize = blockSize;
            this.blockAlignment = blockAlignment;
        }

#if !NET8_0_OR_GREATER
        /// <summary>Frees what an owner forgot when its domain is unloaded, which Unity does at each reload. Critical
        /// finalizers run after all others, which may still use the memory.</summary>
        ~BlockStack()
        {
            if (AppDomain.CurrentDomain.IsFinalizingForUnload())
            {
                FreeAll();
            }
        }
#endif

        /// <summary>Where the next item goes. The owner may advance it up to <see cref="Limit"/>.</summary>
        internal byte* Cursor;

        /// <summary>The end of the current block; null before the first block and after
        /// <see cref="FreeAll"/>.</summary>
        internal byte* Limit;

        /// <summary>The current block is known to be zero from here on. Null when the owner wants no zeros.</summary>
        internal byte* DirtyEnd;

        internal int Count => count;

        internal long BytesReserved => reserved;

        internal long BytesInHugePages { get; private set; }

        internal long BytesUsed => current < 0 ? 0 : usedBefore + ((long)Cursor - (long)blocks[current].Start);

        /// <summary>Where the current block begins; null before the first block.</summary>
        internal byte* Start => current < 0 ? null : blocks[current].Start;

        internal Mark Position => new Mark(current, Cursor);

        /// <summary>Memory for one request, from the next block when the current one has no room.</summary>
        /// <exception cref="OutOfMemoryException">The runtime has no memory. Nothing has changed.</exception>
        internal byte* Take(long size, int alignment)
        {
            byte* start = RawMemory.Align(Cursor, alignment);
            if (Limit == null || start > Limit || size > (long)Limit - (long)start)
            {
                Advance(size, alignment);
                start = RawMemory.Align(Cursor, alignment);
            }

            Cursor = start + size;
            return start;
        }

        /// <summary>Clears new memory that the owner hands out, unless it is zero already or need not be.</summary>
        internal void Clear(byte* start, long size)
        {
            if (start < DirtyEnd)
            {
                RawMemory.Clear(start, Math.Min(size, DirtyEnd - start));
            }
        }

        /// <summary>Takes back what was handed out last, from this address on.</summary>
        internal void TakeBack(byte* start)
        {
            if (zeroed && Cursor > DirtyEnd)
            {
                DirtyEnd = Cursor;
            }

            Cursor = start;
        }

        /// <summary>Goes back to a mark, or with null to the start. The blocks after it are kept.</summary>
        internal void Rewind(Mark? place)
        {
            Mark mark = place ?? new Mark(-1, null);
            int target = Math.Max(mark.Block, count == 0 ? -1 : 0);
            if (target < 0)
            {
                return;
            }

            Leave();
            for (int i = current; i >= target; i--)
            {
                usedBefore -= i > target ? blocks[i - 1].Used : 0;
                byte* end = blocks[i].Start + blocks[i].Used;
                if (zeroed && end > blocks[i].DirtyEnd)
                {
                    blocks[i].DirtyEnd = end;
                }
            }

            Enter(target);
            Cursor = mark.Block < 0 ? Cursor : mark.Cursor;
        }

        internal void FreeAll()
        {
            for (int i = 0; i < count; i++)
            {
                if (blocks[i].Raw != null)
                {
                    RawMemory.Free(blocks[i].Raw);
                }
            }

            for (int i = 0; i < slabCount; i++)
            {
                SlabMemory.Give(slabs[i].Start, slabs[i].Bytes);
            }

            slabCount = 0;
            slabCursor = null;
            slabLimit = null;
            probe = null;
            count = 0;
            current = -1;
            reserved = 0;
            BytesInHugePages = 0;
            usedBefore = 0;
            Cursor = null;
            Limit = null;
            DirtyEnd = null;
        }

        private void Advance(long size, int alignment)
        {
            int next = current + 1;
            long needed = checked(size + (alignment > blockAlignment ? alignment : 0));
            if (next >= count || blocks[next].Size < needed)
            {
                Insert(next, Math.Max(blockSize, needed));
            }

            if (current >= 0)
            {
                Leave();
                usedBefore += blocks[current].Used;
            }

            Enter(next);
        }

        private void Leave()
        {
            blocks[current].Used = (long)Cursor - (long)blocks[current].Start;
            blocks[current].DirtyEnd = DirtyEnd;
        }

        private void Enter(int block)
        {
            current = block;
            Cursor = blocks[block].Start;
            Limit = Cursor + blocks[block].Size;
            DirtyEnd = blocks[block].DirtyEnd;
        }

        private void Insert(int at, long size)
        {
            int padding = blockAlignment > RawMemory.NaturalAlignment ? blockAlignment : 0;
            if (count == blocks.Length)
            {
                Array.Resize(ref blocks, count * 2);
            }

            long bytes = checked(size + padding);
            byte* cut = CutFromSlab(bytes);
            byte* raw = cut == null ? RawMemory.Allocate(bytes) : null;
            Array.Copy(blocks, at, blocks, at + 1, count - at);
            byte* start = RawMemory.Align(cut == null ? raw : cut, blockAlignment);
            byte* dirtyEnd = !zeroed ? null : cut == null ? start + size : start;
            blocks[at] = new Block { Raw = raw, Start = start, Size = size, DirtyEnd = dirtyEnd };
            count++;
            reserved += bytes;
        }

        /// <summary>A block cut from a slab; null while the stack is too small for slabs, and where there are
        /// none.</summary>
        private byte* CutFromSlab(long bytes)
        {
            if (bytes > long.MaxValue / 2 || reserved + bytes <= SlabMemory.Unit || !SlabMemory.IsAvailable)
            {
                return null;
            }

            if (bytes > (long)slabLimit - (long)slabCursor)
            {
                if (slabCount == slabs.Length)
                {
                    Array.Resize(ref slabs, Math.Max(4, slabCount * 2));
                }

                long slab = SlabFor(bytes);
                byte* start = SlabMemory.Take(slab);
                if (start == null)
                {
                    return null;
                }

                slabs[slabCount++] = new Slab { Start = start, Bytes = slab };
                slabCursor = start;
                slabLimit = start + slab;
                slabTaken = start;
                slabUsable = start + (slab / Rounded(bytes) * Rounded(bytes));
            }

            byte* cut = slabCursor;
            byte* next = cut + Rounded(bytes);
            slabCursor = next < slabLimit ? next : slabLimit;
            bool isWritten = probe != null && SlabMemory.IsResident(probe);
            probe = (byte*)((ulong)(cut + bytes) & ~(ulong)(SlabMemory.SmallPage - 1)) - SlabMemory.SmallPage;
            if (probe <= cut)
            {
                probe = null;
            }
            else if (isWritten && zeroed)
            {
                BytesInHugePages += SlabPages.Prepare(cut, probe - cut, ref slabTaken, slabUsable, reserved);
            }

            return cut;
        }

        private static long Rounded(long bytes) => (bytes + BlockBoundary - 1) & ~(BlockBoundary - 1);

        /// <summary>Bytes of the next slab. Of several possible numbers of blocks, the one that wastes the least at the
        /// slab's end.</summary>
        private long SlabFor(long block)
        {
            const int Candidates = 16;
            long blocksAtLeast = Math.Max(1, Math.Min(reserved, LargestSlab) / block);
            long best = SlabMemory.RoundUp(blocksAtLeast * block);
            long leastLeft = best - (blocksAtLeast * block);
            for (long more = 1; more < Candidates && block < SlabMemory.Unit; more++)
            {
                long slab = SlabMemory.RoundUp((blocksAtLeast + more) * block);
                long left = slab - ((blocksAtLeast + more) * block);
                if (left < leastLeft)
                {
                    best = slab;
                    leastLeft = left;
                }
            }

            return best;
        }

        /// <summary>A position to rewind to.</summary>
        internal readonly struct Mark
        {
            internal readonly int Block;
            internal readonly byte* Cursor;

            internal Mark(int block, byte* cursor)
            {
                Block = block;
                Cursor = cursor;
            }
        }

        private struct Slab
        {
            internal byte* Start;
            internal long Bytes;
        }

        private struct Block
        {
            /// <summary>The address to free; null for a block that was cut from a slab.</summary>
            internal byte* Raw;
            internal byte* Start;
            internal long Size;
            internal long Used;
            internal byte* DirtyEnd;
        }
    }
}
