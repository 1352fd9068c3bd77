using System;
using System.Runtime.CompilerServices;

namespace Blockyard.Memory
{
    /// <summary>Temp and TempJob of the calling thread, looked up once for all that is allocated in one place.</summary>
    /// <remarks>
    /// <para>The same blocks by the same rules as <see cref="UnmanagedMemory"/>, and the two may be mixed. What is saved is
    /// looking up the thread and the lifetime in every call: on Mono about a third of what a block costs. A
    /// <c>ref struct</c>, so it stays on the stack of the thread that asked for it. Allocates nothing.</para>
    /// <para>From <see cref="UnmanagedMemory.ThisThread"/>; the default value is of no thread.</para>
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
        /// <exception cref="ArgumentOutOfRangeException">A negative size, no such alignment.</exception>
        /// <exception cref="OutOfMemoryException">There is no such memory; nothing has changed.</exception>
        /// <exception cref="InvalidOperationException">Checked builds: it is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void* MallocTemp(long size, int alignment)
        {
#if BLOCKYARD_RELEASE
            ThreadState* state = thread;
            long start = (long)state->TempCursor;

            // As in UnmanagedMemory, but for the alignment's terms: apart from the cursor's they are one constant, which Mono
            // finds out here and not there, where branches come before.
            if ((((alignment - 1) & (alignment | -RawMemory.LargestAlignment)) | ((alignment - 1) & (int)start)) == 0
                && size > 0 && size <= (long)state->TempLimit - start)
            {
                state->LastBlock = (byte*)start;
                state->TempCursor = (byte*)(start + size);
            }
            else
            {
                start = (long)UnmanagedMemory.MallocSlowly(size, alignment, Lifetime.Temp);
            }

            return (void*)start;
#else
            ThrowIfDefault();
            return UnmanagedMemory.MallocSlowly(size, alignment, Lifetime.Temp);
#endif
        }

        /// <summary><see cref="UnmanagedMemory.Malloc"/> of a TempJob block.</summary>
        /// <param name="size">Bytes; 0 gives a block that may be freed and has no usable byte.</param>
        /// <param name="alignment">A power of two up to <see cref="UnmanagedMemory.LargestAlignment"/>.</param>
        /// <exception cref="ArgumentOutOfRangeException">A negative size, no such alignment.</exception>
        /// <exception cref="OutOfMemoryException">There is no such memory; nothing has changed.</exception>
        /// <exception cref="InvalidOperationException">Checked builds: it is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void* MallocTempJob(long size, int alignment)
        {
#if BLOCKYARD_RELEASE
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
                start = (long)UnmanagedMemory.MallocSlowly(size, alignment, Lifetime.TempJob);
            }

            return (void*)start;
#else
            ThrowIfDefault();
            return UnmanagedMemory.MallocSlowly(size, alignment, Lifetime.TempJob);
#endif
        }

        /// <summary><see cref="UnmanagedMemory.Free"/> of a Temp block.</summary>
        /// <param name="block">A live Temp block of this thread, or null.</param>
        /// <exception cref="InvalidOperationException">Checked builds: the block is not one, or this is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void FreeTemp(void* block)
        {
#if BLOCKYARD_RELEASE
            ThreadState* state = thread;
            if (block < state->LastBlock && block >= state->TempStart)
            {
                return;
            }
#else
            ThrowIfDefault();
#endif
            UnmanagedMemory.FreeSlowly(block, Lifetime.Temp);
        }

        /// <summary><see cref="UnmanagedMemory.Free"/> of a TempJob block.</summary>
        /// <param name="block">A live TempJob block of any thread, or null.</param>
        /// <exception cref="InvalidOperationException">Checked builds: the block is not one, or this is the default value.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void FreeTempJob(void* block)
        {
#if BLOCKYARD_RELEASE
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
#else
            ThrowIfDefault();
#endif
            UnmanagedMemory.FreeSlowly(block, Lifetime.TempJob);
        }

#if !BLOCKYARD_RELEASE
        private void ThrowIfDefault()
        {
            if (thread == null)
            {
                throw new InvalidOperationException("The default ThreadAllocator is of no thread; UnmanagedMemory.ThisThread gives one.");
            }
        }
#endif
    }
}
