#if BLOCKYARD_PIPELINES
using System;
using System.IO.Pipelines;
using System.Text;
using System.Text.Json;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>System.IO.Pipelines with buffers of unmanaged memory.</summary>
    [TestFixture]
    public unsafe class PipelinesTests
    {
        [Test]
        public void what_is_written_into_a_pipe_is_read_where_it_was_written()
        {
            long before = ThreadMemory.TotalsOfAll().PersistentBytes;
            using (UnmanagedMemoryPool pool = new UnmanagedMemoryPool())
            {
                Pipe pipe = new Pipe(new PipeOptions(pool, useSynchronizationContext: false));
                fixed (byte* written = pipe.Writer.GetSpan())
                {
                    using (Utf8JsonWriter json = new Utf8JsonWriter(pipe.Writer))
                    {
                        JsonSerializer.Serialize(json, new[] { 1, 2, 3 });
                    }

                    Assert.IsTrue(pipe.Writer.FlushAsync().IsCompletedSuccessfully);
                    Assert.That(ThreadMemory.TotalsOfAll().PersistentBytes - before, Is.GreaterThanOrEqualTo(4096));
                    Assert.IsTrue(pipe.Reader.TryRead(out ReadResult result));
                    Assert.AreEqual("[1,2,3]", Encoding.UTF8.GetString(result.Buffer.FirstSpan));
                    fixed (byte* read = result.Buffer.FirstSpan)
                    {
                        Assert.IsTrue(read == written);
                    }

                    pipe.Reader.AdvanceTo(result.Buffer.End);
                }

                pipe.Writer.Complete();
                pipe.Reader.Complete();
            }

            Assert.AreEqual(before, ThreadMemory.TotalsOfAll().PersistentBytes);
        }
    }
}
#endif
