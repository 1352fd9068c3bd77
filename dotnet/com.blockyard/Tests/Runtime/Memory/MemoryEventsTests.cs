#if NET8_0_OR_GREATER
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Threading;
using Blockyard.Memory;
using NUnit.Framework;
using static Blockyard.Tests.FreshThread;

namespace Blockyard.Tests
{
    /// <summary>What .NET's profiling tools see: the event source and the meter <c>Blockyard.Memory</c>.</summary>
    [TestFixture]
    public unsafe class MemoryEventsTests
    {
        [Test]
        public void a_meter_counts_every_allocation_by_lifetime() => OnFreshThread(() =>
        {
            // Else a thread of the pool may still be making it.
            GC.KeepAlive(MemoryEvents.Log);
            UnmanagedMemory.Free(UnmanagedMemory.Malloc(1, 1, Lifetime.Persistent), Lifetime.Persistent);
            Dictionary<string, long> seen = new Dictionary<string, long>();
            using (MeterListener listener = new MeterListener())
            {
                listener.InstrumentPublished = (instrument, self) =>
                {
                    if (instrument.Meter.Name == "Blockyard.Memory")
                    {
                        self.EnableMeasurementEvents(instrument);
                    }
                };
                listener.SetMeasurementEventCallback<long>((instrument, value, tags, state) =>
                    seen[instrument.Name + (tags.Length == 0 ? string.Empty : "/" + tags[0].Value)] = value);
                listener.Start();
                listener.RecordObservableInstruments();
                Dictionary<string, long> before = new Dictionary<string, long>(seen);
                void* persistent = UnmanagedMemory.Malloc(1000, 8, Lifetime.Persistent);
                void* job = UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob);
                for (int i = 0; i < 10; i++)
                {
                    UnmanagedMemory.Malloc(64, 8, Lifetime.Temp);
                }

                UnmanagedMemory.ThisThread.MallocTemp(60, 4);
                FrameMemory.EndFrame();
                UnmanagedMemory.Malloc(100, 4, Lifetime.Temp);
                listener.RecordObservableInstruments();
                long Grown(string name) => seen[name] - before[name];
                Assert.AreEqual(12, Grown("blockyard.allocations/temp"));
                Assert.AreEqual(1, Grown("blockyard.allocations/temp-job"));
                Assert.AreEqual(1, Grown("blockyard.allocations/persistent"));
                Assert.AreEqual(1000, Grown("blockyard.live/persistent"));
                Assert.AreEqual(100, Grown("blockyard.live/temp"));
                Assert.That(seen["blockyard.live/temp-job"], Is.GreaterThanOrEqualTo(64));
                Assert.AreEqual(1, Grown("blockyard.frames"));
                UnmanagedMemory.Free(job, Lifetime.TempJob);
                UnmanagedMemory.Free(persistent, Lifetime.Persistent);
                listener.RecordObservableInstruments();
                Assert.AreEqual(0, Grown("blockyard.live/persistent"));
            }

            MemoryEvents.ReadAt = long.MinValue / 2;
            FrameMemory.EndFrame();
            FrameMemory.EndThreadFrame();
            Assert.IsFalse(AllocationCounts.AreOn, "nobody reads it any more");
        });

        [Test]
        public void a_listener_sees_frame_ends_and_counters() => OnFreshThread(() =>
        {
            // Else a thread of the pool may still be making it.
            GC.KeepAlive(MemoryEvents.Log);
            using (Listener listener = new Listener())
            {
                UnmanagedMemory.Malloc(500, 4, Lifetime.Temp);
                FrameMemory.EndFrame();
                Assert.AreEqual((FrameMemory.FramesEnded, 500L), listener.LastFrame);

                // The runtime polls the counters on a thread of its own.
                HashSet<string> missing = new HashSet<string>
                {
                    "temp-allocations", "temp-job-allocations", "persistent-allocations", "temp-bytes",
                    "temp-job-bytes", "persistent-bytes", "frames",
                };
                while (missing.Count > 0)
                {
                    missing.Remove(listener.Counters.Take());
                }
            }

            FrameMemory.EndFrame();
            Assert.IsFalse(AllocationCounts.AreOn, "nobody listens any more");
        });

        private sealed class Listener : EventListener
        {
            internal System.Collections.Concurrent.BlockingCollection<string> Counters { get; } =
                new System.Collections.Concurrent.BlockingCollection<string>();

            internal (long Frame, long Bytes) LastFrame { get; private set; }

            protected override void OnEventSourceCreated(EventSource source)
            {
                if (source.Name == "Blockyard.Memory")
                {
                    Dictionary<string, string?> often = new Dictionary<string, string?>
                    {
                        ["EventCounterIntervalSec"] = "0.05",
                    };
                    EnableEvents(source, EventLevel.Informational, EventKeywords.All, often);
                }
            }

            protected override void OnEventWritten(EventWrittenEventArgs written)
            {
                if (written.EventName == "FrameEnd")
                {
                    LastFrame = ((long)written.Payload![0]!, (long)written.Payload[1]!);
                }
                else if (written.EventName == "EventCounters")
                {
                    Counters.Add((string)((IDictionary<string, object>)written.Payload![0]!)["Name"]);
                }
            }
        }
    }
}
#endif
