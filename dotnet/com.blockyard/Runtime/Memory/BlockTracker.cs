#pragma warning disable CS0162 // checks are a constant in Unity
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>Knows the live blocks while leak detection or checks are on, catches frees of others, and reports
    /// leaks.</summary>
    /// <remarks>
    /// TempJob blocks have a header (<see cref="JobBlock"/>). Persistent blocks have an entry in a table with one lock,
    /// because a bad address must not be read.
    /// </remarks>
    internal static unsafe class BlockTracker
    {
        private static readonly object Gate = new object();
        private static volatile int entries;
        private static volatile int stacks;

        /// <summary>Whether TempJob blocks that are allocated now get a header.</summary>
        internal static bool IsOn => Checks.AreOn || !LeakDetection.IsOff;

        internal static void AddJob(JobRegion* region, byte* block, long size)
        {
            JobBlock.Begin(region, block, size);
            if (LeakDetection.Mode == LeakMode.OnWithStacks)
            {
                AddStack(block);
            }
        }

        /// <summary>Ends a TempJob block of a region whose blocks have headers.</summary>
        /// <exception cref="InvalidOperationException">It is not live.</exception>
        internal static void RemoveJob(byte* block)
        {
            if (!JobBlock.TryEnd(block))
            {
                ThrowNotLive(Lifetime.TempJob);
            }

            RemoveStack(block);
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void AddPersistent(byte* block, long size)
        {
            if (IsOn)
            {
                AddPersistentSlowly(block, size);
            }
        }

        /// <summary>Whether some live Persistent block may have an entry under its address. Blocks keep theirs when
        /// leak detection is turned off.</summary>
        internal static bool MayHaveEntries => IsOn || entries > 0;

        /// <exception cref="InvalidOperationException">Checks are on, and the block is not live.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void RemovePersistent(byte* block)
        {
            if (Checks.AreOn || entries > 0)
            {
                RemovePersistentSlowly(block);
            }
        }

        private static void AddPersistentSlowly(byte* block, long size)
        {
            long frame = LeakDetection.IsOff ? LiveBlock.NoReport : FrameMemory.FramesEnded;
            lock (Gate)
            {
                Tables.Persistent[(ulong)block] = new LiveBlock((ulong)block, size, frame, Lifetime.Persistent);
                entries = Tables.Persistent.Count;
            }

            AddStack(block);
        }

        private static void RemovePersistentSlowly(byte* block)
        {
            bool isLive;
            lock (Gate)
            {
                isLive = Tables.Persistent.Remove((ulong)block);
                entries = Tables.Persistent.Count;
                RemoveStack(block);
            }

            if (Checks.AreOn && !isLive)
            {
                ThrowNotLive(Lifetime.Persistent);
            }
        }

        internal static void ThrowNotLive(Lifetime lifetime) => throw new InvalidOperationException(
            "The block is not a live " + lifetime + " block: it was already freed, or is of another lifetime.");

        /// <summary>Reports each TempJob block that is older than the rule allows, once.</summary>
        internal static void ReportOverdue(long framesEnded, int allowed)
        {
            if (!JobRegion.IsAnyTracked)
            {
                return;
            }

            List<string>? texts = null;
            lock (Gate)
            {
                Tables.Overdue.Clear();
                JobRegion.FindLive(Tables.Overdue, framesEnded - allowed - 1, once: true);
                foreach (LiveBlock block in Tables.Overdue)
                {
                    texts = texts ?? new List<string>();
                    texts.Add(block + " is older than " + allowed + " frames" + Where(block.Address));
                }
            }

            Report(texts);
        }

        internal static int ReportAll()
        {
            List<string> texts = new List<string>();
            lock (Gate)
            {
                List<LiveBlock> live = new List<LiveBlock>(Tables.Persistent.Values);
                JobRegion.FindLive(live, long.MaxValue, once: false);
                foreach (LiveBlock block in live)
                {
                    if (block.Frame != LiveBlock.NoReport)
                    {
                        texts.Add(block + " is live" + Where(block.Address));
                    }
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

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void AddStack(byte* block)
        {
            StackTrace? stack = LeakDetection.CaptureStack();
            if (stack != null)
            {
                lock (Gate)
                {
                    Tables.Stacks[(ulong)block] = stack;
                    stacks = Tables.Stacks.Count;
                }
            }
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private static void RemoveStack(byte* block)
        {
            if (stacks > 0)
            {
                RemoveStackSlowly(block);
            }
        }

        private static void RemoveStackSlowly(byte* block)
        {
            lock (Gate)
            {
                Tables.Stacks.Remove((ulong)block);
                stacks = Tables.Stacks.Count;
            }
        }

        private static string Where(ulong block) => Tables.Stacks.TryGetValue(block, out StackTrace? stack)
            ? ", allocated at" + Environment.NewLine + stack
            : "; set LeakMode.OnWithStacks to see where it was allocated";

        /// <summary>Apart, because a runtime that compiles their code takes some milliseconds, which a process without
        /// tracking must not pay with its first block.</summary>
        private static class Tables
        {
            internal static readonly Dictionary<ulong, LiveBlock> Persistent = new Dictionary<ulong, LiveBlock>();
            internal static readonly Dictionary<ulong, StackTrace> Stacks = new Dictionary<ulong, StackTrace>();
            internal static readonly List<LiveBlock> Overdue = new List<LiveBlock>();
        }
    }
}
