using System;

namespace Blockyard.Memory
{
    /// <summary>Takes the pages of blocks that are about to be filled: by the block, and huge ones as long as they are cheaper.</summary>
    /// <remarks>
    /// What a huge page costs differs by a factor of 60 from one moment to the next: the kernel has one, or first has to move
    /// other pages about, or has one that a virtual machine's host first has to find memory for. So each is timed, and so are
    /// small pages, in CPU time of the calling thread; <see cref="PageCosts"/> says which to take, for all threads together, and
    /// <see cref="CheaperWay"/> by which of two ways small ones are taken.
    /// </remarks>
    internal static unsafe class SlabPages
    {
        /// <summary>An owner of less, in bytes, asks for none: what of a huge page is not used yet stays below 1/32 of its memory.</summary>
        internal const long LeastForHuge = 32 * SlabMemory.Unit;

        /// <summary>The most bytes of a block that pages are taken for in advance: of more, much may never be used.</summary>
        private const long LargestPrepared = 4 * 1024 * 1024;

        private static readonly PageCosts Costs = new PageCosts(SlabMemory.Unit);

        /// <summary>Small pages one by one, and by <see cref="PageCopies"/>; guarded as the costs are.</summary>
        private static readonly CheaperWay Ways = new CheaperWay(SlabMemory.Unit / 2);

        private static volatile bool mayAsk = Environment.GetEnvironmentVariable("BLOCKYARD_HUGE_PAGES") != "0";

        /// <summary>Whether huge pages may be asked for.</summary>
        internal static bool MayAsk
        {
            get => mayAsk;
            set => mayAsk = value;
        }

        /// <summary>Takes the pages of a block, all at once. Never throws: a page that was not to be had comes with its first use.</summary>
        /// <param name="block">The block.</param>
        /// <param name="bytes">Its size.</param>
        /// <param name="taken">Up to where its slab's memory is taken already; moves on behind a huge page.</param>
        /// <param name="usable">Up to where blocks will be cut from the slab: a huge page that reaches further is not asked for.</param>
        /// <param name="held">Bytes that the owner holds.</param>
        /// <returns>Bytes that were taken as huge pages.</returns>
        internal static long Prepare(byte* block, long bytes, ref byte* taken, byte* usable, long held)
        {
            if (bytes > LargestPrepared)
            {
                return 0;
            }

            long end = WholePages((long)block + bytes);
            long at = Math.Max((long)block & ~(SlabMemory.SmallPage - 1), (long)taken);
            long huge = 0;
            while (at < end)
            {
                if (MayAskFor(at, usable, held))
                {
                    long got = Ask((byte*)at);
                    huge += got == SlabMemory.Unit ? got : 0;
                    at += got;
                    if (got > 0)
                    {
                        continue;
                    }
                }

                // Up to where the next huge page may be asked for: the fewer calls the better.
                long next = PieceAfter(at);
                while (next < end && !MayAskFor(next, usable, held))
                {
                    next += SlabMemory.Unit;
                }

                next = Math.Min(next, end);
                TakeSmall((byte*)at, next - at);
                at = next;
            }

            taken = (byte*)Math.Max(at, (long)taken);
            return huge;
        }

        private static long WholePages(long end) => (end + SlabMemory.SmallPage - 1) & ~(SlabMemory.SmallPage - 1);

        private static long PieceAfter(long address) => (address | (SlabMemory.Unit - 1)) + 1;

        private static bool MayAskFor(long piece, byte* usable, long held)
        {
            if (!mayAsk || held < LeastForHuge || (piece & (SlabMemory.Unit - 1)) != 0 || PieceAfter(piece) > (long)usable)
            {
                return false;
            }

            lock (Costs)
            {
                return Costs.IsWorthAsking;
            }
        }

        /// <summary>Bytes that are there then: a huge page, or the small one that came in its place, or nothing.</summary>
        private static long Ask(byte* piece)
        {
            // The lock is not held meanwhile: a dear ask must not make other threads wait.
            long start = SlabMemory.ThreadNanoseconds();
            if (!SlabMemory.AdviseHuge(piece))
            {
                // A kernel that knows no huge pages, or a limit on mappings that is reached.
                mayAsk = false;
                return 0;
            }

            *piece = 0;
            long cost = SlabMemory.ThreadNanoseconds() - start;
            bool given = SlabMemory.IsWholePieceResident(piece);
            lock (Costs)
            {
                Costs.Asked(given, cost);
            }

            return given ? SlabMemory.Unit : SlabMemory.SmallPage;
        }

        private static void TakeSmall(byte* start, long bytes)
        {
            bool mayCopy = bytes >= PageCopies.Least && PageCopies.IsAvailable;
            bool copy = false;
            if (mayCopy)
            {
                lock (Costs)
                {
                    copy = Ways.TakeSecond;
                }
            }

            long begun = SlabMemory.ThreadNanoseconds();
            bool copied = copy && PageCopies.TryFill(start, bytes);
            if (copied || SlabMemory.Populate(start, bytes))
            {
                long cost = SlabMemory.ThreadNanoseconds() - begun;
                lock (Costs)
                {
                    Costs.TookSmall(bytes, cost);
                    if (mayCopy)
                    {
                        Ways.Took(copy, bytes, cost);
                    }
                }
            }
        }
    }
}
