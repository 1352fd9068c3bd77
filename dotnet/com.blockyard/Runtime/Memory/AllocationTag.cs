using System;
using System.Collections.Concurrent;
using System.Runtime.InteropServices;
using System.Text;

namespace Blockyard.Memory
{
    /// <summary>Names what the calling thread is doing, for <c>blockyard record</c>: each allocation and free that it
    /// records has the thread's tags, such as "physics/broadphase". Native allocations are meant; the garbage-collected
    /// heap's objects are not recorded.</summary>
    /// <remarks>
    /// <para>Without a recorder nothing happens: a push is a load and a branch. Under one it costs about 100 ns.</para>
    /// <para>Tags belong to a thread, and the type can't be kept across an <c>await</c>. Dispose in the reverse order,
    /// on the same thread. Nothing is allocated once a name has been used; the first 4,096 names are kept for the
    /// process's life, and later ones are left out of the path.</para>
    /// </remarks>
    /// <example>
    /// <code>
    /// using (AllocationTag.Push("physics"))
    /// {
    ///     Simulate();
    /// }
    /// </code>
    /// </example>
    public readonly ref struct AllocationTag
    {
        private const int MostNames = 4096;

        private readonly bool pushed;

        private AllocationTag(bool pushed) => this.pushed = pushed;

        private delegate void PushName(IntPtr name);

        private delegate void PopLevel();

        private delegate uint CurrentPath();

        private delegate void EnterPath(uint path);

        /// <summary>Whether there is a recorder in the process, which tags are for.</summary>
        public static bool IsRecorded => Recorder.IsPresent;

        /// <summary>All tags of the calling thread, to be carried to another thread.</summary>
        public static AllocationTagPath Current =>
            Recorder.IsPresent ? new AllocationTagPath(Recorder.Current()) : default;

        /// <summary>Adds a level to the calling thread's tags until the result is disposed of.</summary>
        /// <param name="name">A '/' in it begins another level; null and "" add none.</param>
        /// <returns>What removes the level.</returns>
        public static AllocationTag Push(string? name)
        {
            if (!Recorder.IsPresent)
            {
                return default;
            }

            Recorder.Push(string.IsNullOrEmpty(name) ? IntPtr.Zero : Recorder.NativeName(name!));
            return new AllocationTag(true);
        }

        /// <summary>Gives the calling thread the tags of another instead of its own until the result is disposed of,
        /// for a task that was handed over.</summary>
        /// <param name="path">What <see cref="Current"/> was on the other thread.</param>
        /// <returns>What ends it.</returns>
        public static AllocationTag Enter(AllocationTagPath path)
        {
            if (!Recorder.IsPresent)
            {
                return default;
            }

            Recorder.Enter(path.Number);
            return new AllocationTag(true);
        }

        /// <summary>Removes the level that the calling thread added last, for scopes that keep no tag.</summary>
        public static void Pop()
        {
            if (Recorder.IsPresent)
            {
                Recorder.Pop();
            }
        }

        /// <summary>Removes the level.</summary>
        public void Dispose()
        {
            if (pushed)
            {
                Recorder.Pop();
            }
        }

        /// <summary>The functions that a recorder exports (blockyard/tag.h), found in the process.</summary>
        private static class Recorder
        {
            internal static readonly bool IsPresent;
            internal static readonly PushName Push = null!;
            internal static readonly PopLevel Pop = null!;
            internal static readonly CurrentPath Current = null!;
            internal static readonly EnterPath Enter = null!;

            private static readonly ConcurrentDictionary<string, IntPtr> Names =
                new ConcurrentDictionary<string, IntPtr>();

            static Recorder()
            {
                IntPtr push = Find("by_recorder_tag_push");
                if (push == IntPtr.Zero)
                {
                    return;
                }

                Push = Marshal.GetDelegateForFunctionPointer<PushName>(push);
                Pop = Marshal.GetDelegateForFunctionPointer<PopLevel>(Find("by_recorder_tag_pop"));
                Current = Marshal.GetDelegateForFunctionPointer<CurrentPath>(Find("by_recorder_tag_current"));
                Enter = Marshal.GetDelegateForFunctionPointer<EnterPath>(Find("by_recorder_tag_enter"));
                IsPresent = true;
            }

            /// <summary>The name as UTF-8. It is never freed: the recorder may read it at any time.</summary>
            internal static IntPtr NativeName(string name)
            {
                if (Names.TryGetValue(name, out IntPtr known))
                {
                    return known;
                }

                if (Names.Count >= MostNames)
                {
                    return IntPtr.Zero;
                }

                byte[] text = Encoding.UTF8.GetBytes(name + "\0");
                IntPtr copy = Marshal.AllocHGlobal(text.Length);
                Marshal.Copy(text, 0, copy, text.Length);
                if (Names.TryAdd(name, copy))
                {
                    return copy;
                }

                Marshal.FreeHGlobal(copy);
                return Names[name];
            }

            private static IntPtr Find(string name)
            {
                try
                {
                    return FindInLibc(IntPtr.Zero, name);
                }
                catch (DllNotFoundException)
                {
                    return IntPtr.Zero;
                }
                catch (EntryPointNotFoundException)
                {
                    return FindByLoader(name);
                }
            }

            // Before version 2.34, glibc kept dlsym in a separate library.
            private static IntPtr FindByLoader(string name)
            {
                try
                {
                    return FindInLibdl(IntPtr.Zero, name);
                }
                catch (TypeLoadException)
                {
                    // The library or the function is not there.
                    return IntPtr.Zero;
                }
            }

            [DllImport("libc", EntryPoint = "dlsym")]
            private static extern IntPtr FindInLibc(IntPtr everywhere, [MarshalAs(UnmanagedType.LPStr)] string name);

            [DllImport("libdl.so.2", EntryPoint = "dlsym")]
            private static extern IntPtr FindInLibdl(IntPtr everywhere, [MarshalAs(UnmanagedType.LPStr)] string name);
        }
    }
}
