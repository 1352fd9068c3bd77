using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Allocates Temp and TempJob blocks of the calling thread after looking up the thread only
    /// once.</summary>
    /// <remarks>
    /// <para>The same blocks and rules as <see cref="UnmanagedMemory"/>; the two may be mixed. It saves looking up the
    /// thread and the lifetime in every call, which on Mono is about a third of the cost of a block. A <c>ref
    /// struct</c>, so it stays on its thread's stack. It makes no garbage.</para>
    /// <para>Get it from <see cref="UnmanagedMemory.ThisThread"/>. The default value has no thread.</para>
    /// </remarks>
    public readonly unsafe ref struct ThreadAllocator
    {
        private readonly ThreadState* thread;

        internal ThreadAllocator(ThreadState* thread)
        {
            this.thread = thread;
        }

        /// <summary><see cref="UnmanagedMemory.Malloc"/> of a Temp block.</summary>
        /// <param name="size">Bytes; 0 gives a block that may be freed and has no usable byte.</param>
        /// <param name="alignment">A power of two up to <see cref="UnmanagedMemory.LargestAlignment"/>.</param>
        /// <exception cref="ArgumentOutOfRangeException">A negative size or an invalid alignment.</exception>
        /// <exception cref="OutOfMemoryException">There is not enough memory. Nothing has changed.</exception>
        /// <exception cref="NullReferenceException">This is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void* MallocTemp(long size, int alignment)
        {
            ThreadState* state = thread;
            long start = (long)state->TempCursor;

            // As in UnmanagedMemory, except that the terms of the alignment are separate from the cursor's. They are
            // one constant, and Mono folds it here, where no branches come first.
            if ((((alignment - 1) & (alignment | -RawMemory.LargestAlignment)) | ((alignment - 1) & (int)start)) == 0
                && size > 0 && size <= (long)state->InlineTempLimit - start)
            {
                state->LastBlock = (byte*)start;
                state->TempCursor = (byte*)(start + size);
            }
            else
            {
                start = (long)UnmanagedMemory.MallocSlowly(state, size, alignment, Lifetime.Temp);
            }

            return (void*)start;
        }

        /// <summary><see cref="UnmanagedMemory.Malloc"/> of a TempJob block.</summary>
        /// <param name="size">Bytes; 0 gives a block that may be freed and has no usable byte.</param>
        /// <param name="alignment">A power of two up to <see cref="UnmanagedMemory.LargestAlignment"/>.</param>
        /// <exception cref="ArgumentOutOfRangeException">A negative size or an invalid alignment.</exception>
        /// <exception cref="OutOfMemoryException">There is not enough memory. Nothing has changed.</exception>
        /// <exception cref="NullReferenceException">This is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void* MallocTempJob(long size, int alignment)
        {
            ThreadState* state = thread;
            long start = (long)state->JobCursor;
            if ((((alignment - 1) & (alignment | -RawMemory.LargestAlignment)) | ((alignment - 1) & (int)start)) == 0
                && size > 0 && size <= (long)state->InlineJobLimit - start)
            {
                state->JobCursor = (byte*)(start + size);
                state->JobLive = state->JobLive + 1;
            }
            else
            {
                start = (long)UnmanagedMemory.MallocSlowly(state, size, alignment, Lifetime.TempJob);
            }

            return (void*)start;
        }

        /// <summary><see cref="UnmanagedMemory.Free"/> of a Temp block.</summary>
        /// <param name="block">A live Temp block of this thread, or null.</param>
        /// <exception cref="InvalidOperationException">With checks: the block is not a live one.</exception>
        /// <exception cref="NullReferenceException">This is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void FreeTemp(void* block)
        {
            ThreadState* state = thread;
            if (block < state->LastBlock && block >= state->InlineTempStart)
            {
                return;
            }

            UnmanagedMemory.FreeSlowly(state, block, Lifetime.Temp);
        }

        /// <summary><see cref="UnmanagedMemory.Free"/> of a TempJob block.</summary>
        /// <param name="block">A live TempJob block of any thread, or null.</param>
        /// <exception cref="InvalidOperationException">With checks: the block is not a live one.</exception>
        /// <exception cref="NullReferenceException">This is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void FreeTempJob(void* block)
        {
            ThreadState* state = thread;
            if (((long)block & -ThreadState.JobRegionSize) == (long)state->InlineJob)
            {
                long live = state->JobLive - 1;
                if (live > 0)
                {
                    state->JobLive = live;
                    return;
                }
            }

            UnmanagedMemory.FreeSlowly(state, block, Lifetime.TempJob);
        }
    }
}
