#if NET8_0_OR_GREATER
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net.Sockets;
using System.Text;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>What dotnet-counters is sent: the events of the providers that it asks for, through the port that each
    /// .NET process opens for tools (dotnet/diagnostics, documentation/design-docs/ipc-protocol.md).</summary>
    [TestFixture]
    public unsafe class DiagnosticPortTests
    {
        private const string Interval = "0.2";

        private static readonly string[] Instruments =
        {
            "blockyard.allocations\0{allocation}\0lifetime=temp",
            "blockyard.allocations\0{allocation}\0lifetime=temp-job",
            "blockyard.allocations\0{allocation}\0lifetime=persistent",
            "blockyard.live\0By\0lifetime=temp",
            "blockyard.live\0By\0lifetime=temp-job",
            "blockyard.live\0By\0lifetime=persistent",
            "blockyard.frames\0{frame}\0",
        };

        [Test]
        public void a_tool_outside_is_sent_the_meter_s_values() => FreshThread.OnFreshThread(() =>
        {
            void* block = UnmanagedMemory.Malloc(1 << 20, 8, Lifetime.Persistent);
            string[] values = Collect(
                "System.Diagnostics.Metrics",
                keywords: 2,
                "SessionId=1;Metrics=Blockyard.Memory;RefreshInterval=" + Interval
                    + ";MaxTimeSeries=1000;MaxHistograms=10;ClientId=1",
                Instruments.Select(instrument => "Blockyard.Memory\0\0" + instrument + "\0").ToArray());

            // After the tags come the change since the last event and the value, both as text.
            long[] numbers = values.Select(value => long.Parse(value.Split('\0')[1])).ToArray();
            Assert.That(numbers[5], Is.InRange(1 << 20, long.MaxValue), "live bytes of Persistent");
            Assert.That(numbers[6], Is.InRange(1, FrameMemory.FramesEnded), "frames");
            UnmanagedMemory.Free(block, Lifetime.Persistent);
            MemoryEvents.ReadAt = long.MinValue / 2;
            FrameMemory.EndFrame();
            Assert.IsFalse(AllocationCounts.AreOn, "nobody reads it any more");
        });

        [Test]
        public void a_tool_outside_is_sent_the_source_s_counters() => FreshThread.OnFreshThread(() =>
        {
            Collect(
                "Blockyard.Memory",
                keywords: -1,
                "EventCounterIntervalSec=" + Interval,
                "temp-allocations\0Temp allocations\0",
                "temp-job-allocations\0TempJob allocations\0",
                "persistent-allocations\0Persistent allocations\0",
                "temp-bytes\0Temp bytes in use\0",
                "temp-job-bytes\0TempJob bytes held\0",
                "persistent-bytes\0Persistent bytes in use\0",
                "frames\0Frames ended\0");
            FrameMemory.EndFrame();
            Assert.IsFalse(AllocationCounts.AreOn, "nobody listens any more");
        });

        /// <summary>Listens to a provider, while frames pass, until texts have come twice.</summary>
        /// <returns>What followed each text when it came second.</returns>
        private static string[] Collect(string provider, long keywords, string arguments, params string[] texts)
        {
            using Socket session = Connect();
            // CollectTracing2: a buffer of 16 MB, nettrace, no rundown, one provider, level Informational.
            byte[] answer = Ask(session, 0x03, writer =>
            {
                writer.Write(16);
                writer.Write(1);
                writer.Write((byte)0);
                writer.Write(1);
                writer.Write(keywords);
                writer.Write(4);
                foreach (string text in new[] { provider, arguments })
                {
                    writer.Write(text.Length + 1);
                    writer.Write(Encoding.Unicode.GetBytes(text + "\0"));
                }
            });
            MemoryStream seen = new MemoryStream();
            byte[] buffer = new byte[64 * 1024];
            string[] found;
            Stopwatch clock = Stopwatch.StartNew();
            do
            {
                UnmanagedMemory.Malloc(100, 4, Lifetime.Temp);
                UnmanagedMemory.Free(UnmanagedMemory.Malloc(64, 8, Lifetime.TempJob), Lifetime.TempJob);
                FrameMemory.EndFrame();
                seen.Write(buffer, 0, session.Receive(buffer));
                Assert.That(clock.Elapsed.TotalSeconds, Is.LessThan(30), "not all was sent");
                byte[] all = seen.ToArray();
                found = texts.Select(text => AfterSecond(all, text)).Where(rest => rest != null).ToArray()!;
            }
            while (found.Length < texts.Length);

            using (Socket other = Connect())
            {
                Ask(other, 0x01, writer => writer.Write(answer));
            }

            while (session.Receive(buffer) > 0)
            {
                // The runtime closes the stream when the session has ended.
            }

            return found;
        }

        /// <summary>64 characters behind a text's second occurrence; null before they have come.</summary>
        private static string? AfterSecond(ReadOnlySpan<byte> stream, string text)
        {
            byte[] bytes = Encoding.Unicode.GetBytes(text);
            for (int i = 0; i < 2; i++)
            {
                int at = stream.IndexOf(bytes);
                if (at < 0)
                {
                    return null;
                }

                stream = stream.Slice(at + bytes.Length);
            }

            return stream.Length < 128 ? null : Encoding.Unicode.GetString(stream.Slice(0, 128));
        }

        private static Socket Connect()
        {
            // A process that was killed leaves its port behind, and its number may be used again.
            string port = Directory.GetFiles(
                    Path.GetTempPath(), "dotnet-diagnostic-" + Environment.ProcessId + "-*-socket")
                .OrderBy(File.GetLastWriteTimeUtc).Last();
            Socket socket = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified)
            {
                ReceiveTimeout = 20_000,
            };
            socket.Connect(new UnixDomainSocketEndPoint(port));
            return socket;
        }

        /// <summary>Sends a command of the set EventPipe and returns the answer: the session's number.</summary>
        private static byte[] Ask(Socket socket, byte command, Action<BinaryWriter> write)
        {
            MemoryStream body = new MemoryStream();
            write(new BinaryWriter(body));
            byte[] magic = Encoding.ASCII.GetBytes("DOTNET_IPC_V1\0");
            const int HeaderSize = 20;
            int size = HeaderSize + (int)body.Length;
            IEnumerable<byte> header =
                magic.Concat(new byte[] { (byte)size, (byte)(size >> 8), 0x02, command, 0, 0 });
            socket.Send(header.Concat(body.ToArray()).ToArray());
            byte[] answer = new byte[HeaderSize + sizeof(long)];
            int received = 0;
            while (received < answer.Length)
            {
                received += socket.Receive(answer, received, answer.Length - received, SocketFlags.None);
            }

            Assert.AreEqual(0, answer[17], "the runtime refused the command");
            return answer.Skip(HeaderSize).ToArray();
        }
    }
}
#endif
