using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>Remembers live blocks while leak detection is on. One lock, and one entry per block on the collected
    /// heap.</summary>
    internal static unsafe class BlockTracker
    {
        private static readonly object Gate = new object();
        private static readonly Dictionary<ulong, Entry> Live = new Dictionary<ulong, Entry>();
        private static readonly List<ulong> Overdue = new List<ulong>();
        private static volatile int tracked;
#if !BLOCKYARD_RELEASE
        private static readonly int[] NotTracked = new int[(int)Lifetime.Persistent + 1];
#endif

        /// <summary>The number of remembered blocks. Freeing takes the lock only when it is not 0.</summary>
        internal static int Tracked => tracked;

        /// <summary>Remembers a block if leak detection is on. Checked builds count the others.</summary>
        internal static void Add(void* block, long size, Lifetime lifetime)
        {
            if (LeakDetection.IsOff)
            {
#if !BLOCKYARD_RELEASE
                Interlocked.Increment(ref NotTracked[(int)lifetime]);
#endif
                return;
            }

            StackTrace? stack = LeakDetection.CaptureStack();
            lock (Gate)
            {
                Live[(ulong)block] = new Entry
                {
                    Size = size,
                    Lifetime = lifetime,
                    Frame = FrameMemory.FramesEnded,
                    Stack = stack,
                };
                tracked = Live.Count;
            }
        }

        /// <summary>Forgets a block that is freed. Checked builds catch a block that is not live.</summary>
        /// <exception cref="InvalidOperationException">Checked builds: no such block is live.</exception>
        internal static void Remove(void* block, Lifetime lifetime)
        {
#if BLOCKYARD_RELEASE
            if (tracked == 0)
            {
                return;
            }
#endif
            lock (Gate)
            {
                bool found = Live.TryGetValue((ulong)block, out Entry entry) && entry.Lifetime == lifetime;
#if !BLOCKYARD_RELEASE
                // A block from when detection was off is not in the table, so there it is only counted.
                if (!found && Interlocked.Decrement(ref NotTracked[(int)lifetime]) < 0)
                {
                    Interlocked.Increment(ref NotTracked[(int)lifetime]);
                    throw new InvalidOperationException(
                        "The block is not a live " + lifetime + " block: it was already freed or is of another lifetime.");
                }
#endif
                if (found)
                {
                    Live.Remove((ulong)block);
                    tracked = Live.Count;
                }
            }
        }

        /// <summary>Reports each TempJob block that is older than the rule allows, once.</summary>
        internal static void ReportOverdue(long framesEnded, int allowed)
        {
            if (Tracked == 0)
            {
                return;
            }

            List<string>? texts = null;
            lock (Gate)
            {
                Overdue.Clear();
                foreach (KeyValuePair<ulong, Entry> pair in Live)
                {
                    Entry entry = pair.Value;
                    if (entry.Lifetime == Lifetime.TempJob && !entry.Reported && framesEnded - entry.Frame > allowed)
                    {
                        Overdue.Add(pair.Key);
                    }
                }

                foreach (ulong block in Overdue)
                {
                    Entry entry = Live[block];
                    entry.Reported = true;
                    Live[block] = entry;
                    texts = texts ?? new List<string>();
                    texts.Add(Describe(block, entry) + " is older than " + allowed + " frames" + Where(entry));
                }
            }

            Report(texts);
        }

        internal static int ReportAll()
        {
            List<string> texts = new List<string>();
            lock (Gate)
            {
                foreach (KeyValuePair<ulong, Entry> pair in Live)
                {
                    texts.Add(Describe(pair.Key, pair.Value) + " is live" + Where(pair.Value));
                }
            }

            Report(texts);
            return texts.Count;
        }

        /// <summary>Called without the lock: the reporter belongs to the program and may allocate blocks.</summary>
        private static void Report(List<string>? texts)
        {
            if (texts != null)
            {
                foreach (string text in texts)
                {
                    LeakDetection.Report(text);
                }
            }
        }

        private static string Describe(ulong block, Entry entry) =>
            "a " + entry.Lifetime + " block of " + entry.Size + " bytes at 0x" + block.ToString("x")
            + ", allocated in frame " + entry.Frame + ",";

        private static string Where(Entry entry) => entry.Stack == null
            ? "; LeakMode.OnWithStacks tells where it was allocated"
            : ", allocated at" + Environment.NewLine + entry.Stack;

        private struct Entry
        {
            internal long Size;
            internal long Frame;
            internal Lifetime Lifetime;
            internal bool Reported;
            internal StackTrace? Stack;
        }
    }
}
