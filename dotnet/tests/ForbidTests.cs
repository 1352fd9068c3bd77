using System.Runtime.InteropServices;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Scopes that must not allocate. dotnet/tests/recorded-tags runs these under <c>blockyard budget</c>, and
    /// looks at what it reports.</summary>
    [TestFixture]
    public class ForbidTests
    {
        private static object? sink;

        [Test]
        public void what_the_collected_heap_gave_in_a_scope_is_found_at_its_end()
        {
            void Allocate()
            {
                using (Forbid.Allocation("collected stretch"))
                {
                    sink = new byte[5000];
                }
            }

            if (!Checks.AreOn || AllocationTag.IsRecorded)
            {
                Assert.DoesNotThrow(Allocate);
                return;
            }

            AllocationAssertException failure = Assert.Throws<AllocationAssertException>(Allocate);
            Assert.That(failure.Bytes, Is.GreaterThanOrEqualTo(5000).And.LessThan(5064));
            StringAssert.Contains("'collected stretch' must not allocate", failure.Message);
        }

        [Test]
        public void native_memory_in_a_scope_is_the_recorders_to_find()
        {
            void Allocate(string scope)
            {
                using (Forbid.Allocation(scope))
                {
                    Marshal.FreeHGlobal(Marshal.AllocHGlobal(700_101));
                }
            }

            // Mono allocates for a first call, and that counts.
            try
            {
                Allocate("new scope");
            }
            catch (AllocationAssertException)
            {
            }

            Allocate("native stretch");
        }

        [Test]
        public void scopes_that_keep_to_it_nest_and_make_no_garbage()
        {
            void Keep(string scope, string within)
            {
                using (Forbid.Allocation(scope))
                using (Forbid.Allocation(within))
                {
                }
            }

            Keep("new scope", "new within");
            void KeepAll() => Keep("kept stretch", "kept within");
            KeepAll();
            AllocationAssert.Zero(KeepAll);
            Marshal.FreeHGlobal(Marshal.AllocHGlobal(700_102));
        }

        [Test]
        public void a_scope_has_a_name_where_anybody_looks()
        {
            if (Checks.AreOn || AllocationTag.IsRecorded)
            {
                Assert.Throws<System.ArgumentException>(() => Forbid.Allocation(string.Empty).Dispose());
            }
        }
    }
}
