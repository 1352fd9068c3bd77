using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Threading;
using Blockyard.Memory;
using NUnit.Framework;
using static Blockyard.Tests.FreshThread;

namespace Blockyard.Tests
{
    /// <summary>Memory of threads, frames and domains that have ended.</summary>
    [TestFixture]
    public unsafe class EndedThreadsTests
    {
        private const long MiB = 1024 * 1024;

        [Test]
        public void threads_one_after_another_use_the_memory_of_those_that_ended()
        {
            long held = FrameMemory.TempJobBytesHeld;
            int threads = FrameMemory.GetStatistics().Count;
            for (int i = 0; i < 300; i++)
            {
                OnFreshThread(UseLifetimes);
            }

            Assert.Less(FrameMemory.TempJobBytesHeld - held, 16 * MiB);
            Assert.Less(FrameMemory.GetStatistics().Count, threads + 100);
        }

        [Test]
        public void what_many_threads_at_once_needed_is_given_back_after_frames()
        {
            EndFrames();
            long held = FrameMemory.TempJobBytesHeld;
            using (ManualResetEvent end = new ManualResetEvent(false))
            {
                List<FreshThread> threads = new List<FreshThread>();
                for (int i = 0; i < 60; i++)
                {
                    threads.Add(new FreshThread(() =>
                    {
                        UseLifetimes();
                        end.WaitOne();
                    }));
                }

                end.Set();
                foreach (FreshThread thread in threads)
                {
                    thread.JoinWithoutFailure();
                }
            }

            EndFrames();
            Assert.LessOrEqual(FrameMemory.TempJobBytesHeld - held, MiB);
        }

        [Test]
        public void what_one_frame_needed_is_given_back_after_frames_and_what_every_frame_needs_is_kept()
        {
            long held = FrameMemory.TempJobBytesHeld;
            UseTempJob(400);
            UseTempJob(400);
            long most = FrameMemory.TempJobBytesHeld;
            Assert.Greater(most, held + (15 * MiB));
            for (int i = 0; i < 130; i++)
            {
                UseTempJob(400);
                Assert.AreEqual(most, FrameMemory.TempJobBytesHeld, MiB);
                FrameMemory.EndFrame();
            }

            EndFrames();

            // The runtime's own memory is not aligned: a region of it takes twice as much.
            Assert.LessOrEqual(FrameMemory.TempJobBytesHeld, Math.Max(held, SlabMemory.IsAvailable ? MiB : 2 * MiB));
        }

        [Test]
        public void counts_of_threads_that_ended_stay()
        {
            long before = ThreadMemory.TotalsOfAll().PersistentAllocations;
            for (int i = 0; i < 20; i++)
            {
                OnFreshThread(() => UnmanagedMemory.Free(
                    UnmanagedMemory.Malloc(1000, 16, Lifetime.Persistent), Lifetime.Persistent));
            }

            Assert.AreEqual(before + 20, ThreadMemory.TotalsOfAll().PersistentAllocations);
        }

        [Test]
        public void a_domain_that_is_unloaded_leaves_nothing()
        {
            if (!Runtime.IsMono || !File.Exists("/proc/self/statm"))
            {
                Assert.Ignore("this runtime has no domains to unload");
            }

            if (Environment.GetEnvironmentVariable("MONO_GC_DEBUG") != null)
            {
                Assert.Ignore("this runtime's collector with self-checks stops any program that unloads a domain");
            }

            // The runtime itself keeps some memory for each domain.
            LoadAndUnload(nothing: true, 5);
            LoadAndUnload(nothing: false, 5);
            long alone = LoadAndUnload(nothing: true, 15);
            long ours = LoadAndUnload(nothing: false, 15);
            Assert.Less(ours - alone, 15 * (MiB / 2));
        }

        /// <summary>Returns the growth of resident memory.</summary>
        private static long LoadAndUnload(bool nothing, int times)
        {
            long before = Resident();
            for (int i = 0; i < times; i++)
            {
                Type setupType = typeof(AppDomainSetup);
                object setup = Activator.CreateInstance(setupType)!;
                setupType.GetProperty("ApplicationBase")!.SetValue(
                    setup, Path.GetDirectoryName(Assembly.GetExecutingAssembly().Location));
                Type evidence = Type.GetType("System.Security.Policy.Evidence")!;
                object domain = typeof(AppDomain)
                    .GetMethod("CreateDomain", new[] { typeof(string), evidence, setupType })!
                    .Invoke(null, new[] { "domain", null, setup })!;
                Action work = nothing ? new Action(DoNothing) : UseEverything;
                Delegate call = Delegate.CreateDelegate(Type.GetType("System.CrossAppDomainDelegate")!, work.Method);
                typeof(AppDomain).GetMethod("DoCallBack")!.Invoke(domain, new object[] { call });
                typeof(AppDomain).GetMethod("Unload")!.Invoke(null, new[] { domain });
            }

            GC.Collect();
            return Resident() - before;
        }

        private static long Resident() =>
            long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]) * Environment.SystemPageSize;

        private static void DoNothing()
        {
        }

        private static void UseEverything()
        {
            for (int frame = 0; frame < 3; frame++)
            {
                UseLifetimes();
                FrameMemory.EndFrame();
            }

            using (UnmanagedAllocator<long> allocator = new UnmanagedAllocator<long>())
            {
                for (int i = 0; i < 1000000; i++)
                {
                    allocator.Allocate() = i;
                }
            }

            // Never disposed.
            new UnmanagedAllocator<long>().AllocateSpan(100000).Fill(1);
            new WrappedAllocator<IntPtr>(1000, pointer => pointer).Allocate();
            OnFreshThread(UseLifetimes);
        }

        private static void UseLifetimes()
        {
            UnmanagedMemory.MallocSpan<byte>(200000, Lifetime.Temp).Fill(1);
            Span<byte> job = UnmanagedMemory.MallocSpan<byte>(20000, Lifetime.TempJob);
            job.Fill(2);
            UnmanagedMemory.Free(job, Lifetime.TempJob);
            FrameMemory.EndThreadFrame();
        }

        private static void UseTempJob(int blocks)
        {
            void** all = stackalloc void*[blocks];
            for (int i = 0; i < blocks; i++)
            {
                all[i] = UnmanagedMemory.Malloc(50000, 16, Lifetime.TempJob);
            }

            for (int i = 0; i < blocks; i++)
            {
                UnmanagedMemory.Free(all[i], Lifetime.TempJob);
            }
        }

        private static void EndFrames()
        {
            for (int i = 0; i < 200; i++)
            {
                FrameMemory.EndFrame();
            }
        }
    }
}
