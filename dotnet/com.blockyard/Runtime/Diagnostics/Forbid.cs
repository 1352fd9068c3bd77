using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Blockyard.Memory;

namespace Blockyard.Diagnostics
{
    /// <summary>Code that must not allocate says so.</summary>
    /// <remarks>
    /// <para>Under <c>blockyard budget</c> what the calling thread allocates in such a scope is reported under the
    /// scope's name: native memory by the recorder, with its call stack, and the collected heap by the runtime's own
    /// counter, in one sum at the scope's end. Without a recorder, and with checks on
    /// (<see cref="Blockyard.Memory.Checks"/>), a scope that allocated on the collected heap throws
    /// <see cref="AllocationAssertException"/> at its end. Otherwise a scope is a load and a branch.</para>
    /// <para>The collected heap is seen where <see cref="AllocationMeter.CanTell"/>. What other threads allocate does
    /// not count.</para>
    /// </remarks>
    /// <example>
    /// <code>
    /// using (Forbid.Allocation("audio callback"))
    /// {
    ///     Mix();
    /// }
    /// </code>
    /// </example>
    public static class Forbid
    {
        // As BY_FORBIDDEN in blockyard/forbid.h, and as blockyard budget knows the sum.
        private const string Forbidden = "no allocation";
        private const string CollectedHeap = "collected heap";

        private static readonly bool IsSeen = LookForListeners();

        /// <summary>What scopes themselves allocated on this thread: a name that is new is copied, and that must not
        /// count for the scopes around it.</summary>
        [ThreadStatic]
        private static long ownBytes;

        private static long BytesOfTheProgram => AllocationMeter.CanTell ? AllocationMeter.BytesSoFar - ownBytes : 0;

        /// <summary>The calling thread must not allocate until the result is disposed of.</summary>
        /// <param name="name">What must not allocate: not empty, and without '/'.</param>
        /// <returns>What ends the scope, on the same thread, in the reverse order of scopes and tags.</returns>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public static ForbiddenScope Allocation(string name) => IsSeen ? Begin(name) : default;

        internal static void End(string name, long before)
        {
            long bytes = BytesOfTheProgram - before;
            if (!AllocationTag.IsRecorded)
            {
                if (bytes > 0)
                {
                    throw new AllocationAssertException(name, bytes);
                }

                return;
            }

            if (bytes > 0)
            {
                // A call of malloc that stands for them: the recorder sees no other.
                using (AllocationTag.Push(CollectedHeap))
                {
                    Marshal.FreeHGlobal(Marshal.AllocHGlobal((IntPtr)bytes));
                }
            }

            AllocationTag.Pop();
            AllocationTag.Pop();
        }

        private static ForbiddenScope Begin(string name)
        {
            if (string.IsNullOrEmpty(name))
            {
                throw new ArgumentException("What must not allocate has a name.", nameof(name));
            }

            long before = BytesOfTheProgram;
            AllocationTag.Push(Forbidden);
            AllocationTag.Push(name);
            ownBytes += BytesOfTheProgram - before;
            return new ForbiddenScope(name, before);
        }

        private static bool LookForListeners()
        {
            // These names are new once, and that must not count in a scope.
            AllocationTag.Push(Forbidden).Dispose();
            AllocationTag.Push(CollectedHeap).Dispose();
            return AllocationTag.IsRecorded || Checks.AreOn;
        }
    }
}
