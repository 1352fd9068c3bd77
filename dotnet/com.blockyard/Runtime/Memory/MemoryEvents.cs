#if NET8_0_OR_GREATER
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Diagnostics.Tracing;
using System.Threading;

namespace Blockyard.Memory
{
    /// <summary>What .NET's tools see: an event source and a meter, both called <c>Blockyard.Memory</c>.</summary>
    /// <remarks>
    /// The source has an event at the end of each frame. The counters are those of the meter, which dotnet-counters and
    /// OpenTelemetry read, and again those of the source, which older tools and an <see cref="EventListener"/> read.
    /// The first allocation of a process lets a thread of the pool make both, because that takes milliseconds; without
    /// a listener they cost nothing after that.
    /// </remarks>
    [EventSource(Name = SourceName)]
    internal sealed class MemoryEvents : EventSource
    {
        internal const string SourceName = "Blockyard.Memory";

        internal static readonly MemoryEvents Log = new MemoryEvents();

        /// <summary>How long counting goes on for a meter that nobody reads. .NET 8.0 may call an instrument enabled
        /// after its only listener is gone.</summary>
        private const long UnreadMilliseconds = 10 * 60 * 1000;

        /// <summary>When the meter was read last, in milliseconds of <see cref="Environment.TickCount64"/>.</summary>
        internal static long ReadAt;

        private readonly Meter meter = new Meter(SourceName);
        private readonly Instrument allocations;
        private List<DiagnosticCounter>? counters;

        private MemoryEvents()
        {
            allocations = meter.CreateObservableCounter(
                "blockyard.allocations", Allocations, "{allocation}", "Allocations by lifetime");
            meter.CreateObservableUpDownCounter("blockyard.live", LiveBytes, "By", "Bytes in use by lifetime");
            meter.CreateObservableCounter(
                "blockyard.frames", () => FrameMemory.FramesEnded, "{frame}", "Calls of FrameMemory.EndFrame");
        }

        /// <summary>The end of a frame: <see cref="FrameMemory.EndFrame"/>.</summary>
        /// <param name="frame">The number of frames that have ended.</param>
        /// <param name="tempBytes">The bytes of Temp that the calling thread used in it.</param>
        [Event(1, Level = EventLevel.Informational)]
        public void FrameEnd(long frame, long tempBytes) => WriteEvent(1, frame, tempBytes);

        /// <summary>Stops counting if nobody listens any more.</summary>
        [NonEvent]
        internal void CheckListeners()
        {
            bool isRead = allocations.Enabled && Environment.TickCount64 - ReadAt < UnreadMilliseconds;
            if (!IsEnabled() && !isRead)
            {
                AllocationCounts.AreOn = false;
            }
        }

        /// <inheritdoc/>
        protected override void OnEventCommand(EventCommandEventArgs command)
        {
            if (command.Command == EventCommand.Enable)
            {
                AllocationCounts.AreOn = true;
                counters ??= new List<DiagnosticCounter>
                {
                    Rate("temp-allocations", "Temp allocations", totals => totals.TempAllocations),
                    Rate("temp-job-allocations", "TempJob allocations", totals => totals.TempJobAllocations),
                    Rate("persistent-allocations", "Persistent allocations", totals => totals.PersistentAllocations),
                    Level("temp-bytes", "Temp bytes in use", totals => totals.TempBytes),
                    Level("temp-job-bytes", "TempJob bytes held", _ => FrameMemory.TempJobBytesHeld),
                    Level("persistent-bytes", "Persistent bytes in use", totals => totals.PersistentBytes),
                    Rate("frames", "Frames ended", _ => FrameMemory.FramesEnded),
                };
            }
        }

        /// <summary>Makes the source and the meter. Static state of this class would make them at once.</summary>
        internal static class Starter
        {
            private static int started;

            internal static void Start()
            {
                if (Interlocked.Exchange(ref started, 1) == 0)
                {
                    ThreadPool.UnsafeQueueUserWorkItem(_ => GC.KeepAlive(Log), null);
                }
            }
        }

        private static KeyValuePair<string, object?> Of(string lifetime) =>
            new KeyValuePair<string, object?>("lifetime", lifetime);

        private static IEnumerable<Measurement<long>> Allocations()
        {
            ReadAt = Environment.TickCount64;
            AllocationCounts.AreOn = true;
            AllocationCounts.Totals totals = ThreadMemory.TotalsOfAll();
            return new[]
            {
                new Measurement<long>(totals.TempAllocations, Of("temp")),
                new Measurement<long>(totals.TempJobAllocations, Of("temp-job")),
                new Measurement<long>(totals.PersistentAllocations, Of("persistent")),
            };
        }

        private static IEnumerable<Measurement<long>> LiveBytes()
        {
            AllocationCounts.Totals totals = ThreadMemory.TotalsOfAll();
            return new[]
            {
                new Measurement<long>(totals.TempBytes, Of("temp")),
                new Measurement<long>(FrameMemory.TempJobBytesHeld, Of("temp-job")),
                new Measurement<long>(totals.PersistentBytes, Of("persistent")),
            };
        }

        private DiagnosticCounter Rate(string name, string title, Func<AllocationCounts.Totals, long> value) =>
            new IncrementingPollingCounter(name, this, () => value(ThreadMemory.TotalsOfAll())) { DisplayName = title };

        private DiagnosticCounter Level(string name, string title, Func<AllocationCounts.Totals, long> value) =>
            new PollingCounter(name, this, () => value(ThreadMemory.TotalsOfAll()))
            {
                DisplayName = title,
                DisplayUnits = "B",
            };
    }
}
#endif
