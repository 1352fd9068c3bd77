using System;
using System.Collections.Generic;
using System.Diagnostics;

namespace Blockyard.Memory
{
    /// <summary>Remembers live blocks while leak detection is on. One lock; an entry a block on the collected heap.</summary>
    internal static unsafe class BlockTracker
    {
        private static readonly object Gate = new object();
        private static readonly Dictionary<ulong, Entry> Live = new Dictionary<ulong, Entry>();
        private static readonly List<ulong> Overdue = new List<ulong>();
        private static volatile int tracked;

        /// <summary>How many blocks are remembered: freeing looks only when there are any.</summary>
        internal static int Tracked => tracked;

        internal static void Add(void* block, long size, Lifetime lifetime)
        {
            StackTrace? stack = LeakDetection.CaptureStack();
            lock (Gate)
            {
                Live[(ulong)block] = new Entry { Size = size, Lifetime = lifetime, Frame = FrameMemory.FramesEnded, Stack = stack };
                tracked = Live.Count;
            }
        }

        internal static void Remove(void* block)
        {
            lock (Gate)
            {
                Live.Remove((ulong)block);
                tracked = Live.Count;
            }
        }

        /// <summary>Reports, once each, the TempJob blocks older than the rule allows.</summary>
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
                    if (pair.Value.Lifetime == Lifetime.TempJob && !pair.Value.Reported && framesEnded - pair.Value.Frame > allowed)
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

        /// <summary>Outside the lock: the reporter is the program's and may allocate blocks itself.</summary>
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
            "a " + entry.Lifetime + " block of " + entry.Size + " bytes at 0x" + block.ToString("x") + ", allocated in frame " + entry.Frame + ",";

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
