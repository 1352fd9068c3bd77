using System;

namespace Blockyard.Memory
{
    /// <summary>Populates the pages of blocks that are about to be filled, with huge pages as long as those are
    /// cheaper.</summary>
    /// <remarks>
    /// The price of a huge page varies by a factor of 60: the kernel has one ready, or must move other pages first, or
    /// the host of a virtual machine must find memory for it. So huge and small pages are timed, in CPU time of the
    /// calling thread. <see cref="PageCosts"/> chooses between them for all threads together, and
    /// <see cref="CheaperWay"/> chooses how small pages are populated.
    /// </remarks>
    internal static unsafe class SlabPages
    {
        /// <summary>The least memory in bytes that an owner must hold for huge pages. It keeps the unused part of a
        /// huge page below 1/32 of that.</summary>
        internal const long LeastForHuge = 32 * SlabMemory.Unit;

        /// <summary>The largest block in bytes that is populated in advance. Much of a larger one may never be
        /// used.</summary>
        private const long LargestPrepared = 4 * 1024 * 1024;

        private static readonly bool AreBound = SlabMemory.IsAvailable && SlabMemory.BindForPages();
        private static readonly PageCosts Costs = new PageCosts(SlabMemory.Unit);

        /// <summary>Small pages by <see cref="SlabMemory.Populate"/> and by <see cref="PageCopies"/>. Guarded by the
        /// lock on the costs.</summary>
        private static readonly CheaperWay Ways = new CheaperWay(SlabMemory.Unit / 2);

        private static volatile bool mayAsk = Environment.GetEnvironmentVariable("BLOCKYARD_HUGE_PAGES") != "0";

        /// <summary>Whether huge pages may be requested.</summary>
        internal static bool MayAsk
        {
            get => mayAsk;
            set => mayAsk = value;
        }

        /// <summary>Populates the pages of a block. Never throws: a page that could not be populated comes with its
        /// first use.</summary>
        /// <param name="block">The block. A page that it shares with the one before it is left out.</param>
        /// <param name="bytes">The part to populate.</param>
        /// <param name="taken">The end of the populated part of the slab; moves forward.</param>
        /// <param name="usable">The end of the blocks that will be cut from the slab. Huge pages are requested only
        /// below it.</param>
        /// <param name="held">Bytes that the owner holds.</param>
        /// <returns>Bytes in huge pages.</returns>
        internal static long Prepare(byte* block, long bytes, ref byte* taken, byte* usable, long held)
        {
            if (bytes > LargestPrepared || !AreBound)
            {
                return 0;
            }

            long end = WholePages((long)block + bytes);
            long at = Math.Max(WholePages((long)block), (long)taken);
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

                // All small pages before the next possible huge page in one call.
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
            if (!mayAsk || held < LeastForHuge
                || (piece & (SlabMemory.Unit - 1)) != 0 || PieceAfter(piece) > (long)usable)
            {
                return false;
            }

            lock (Costs)
            {
                return Costs.IsWorthAsking;
            }
        }

        /// <summary>Requests a huge page. Returns the populated bytes: a huge page, the small page that came instead,
        /// or 0.</summary>
        private static long Ask(byte* piece)
        {
            // Without the lock: an expensive request must not make other threads wait.
            long start = SlabMemory.ThreadNanoseconds();
            if (!SlabMemory.AdviseHuge(piece))
            {
                // The kernel does not support huge pages, or the limit on mappings is reached.
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
