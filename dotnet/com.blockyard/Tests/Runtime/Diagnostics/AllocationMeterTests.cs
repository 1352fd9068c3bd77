using System;
using System.Threading;
using Blockyard.Diagnostics;
using NUnit.Framework;

namespace Blockyard.Tests
{
    [TestFixture]
    public class AllocationMeterTests
    {
        private static object? sink;

        [Test]
        public void this_runtime_can_tell()
        {
            Assert.IsTrue(AllocationMeter.CanTell, AllocationMeter.Explanation);
            Assert.AreEqual(string.Empty, AllocationMeter.Explanation);
        }

        [Test]
        public void an_action_that_allocates_nothing_measures_0()
        {
            int count = 0;
            Action action = () => count++;
            for (int i = 0; i < 100; i++)
            {
                Assert.AreEqual(0, AllocationMeter.Measure(action).Bytes);
            }
        }

        [TestCase(1)]
        [TestCase(100)]
        [TestCase(5000)]
        [TestCase(200000)]
        public void an_array_is_measured_to_its_header(int length)
        {
            AllocationMeasurement measured = AllocationMeter.Measure(() => sink = new byte[length]);
            Assert.IsTrue(measured.IsKnown);
            if (Runtime.IsCore && length >= 85000)
            {
                Assert.Ignore("this runtime is .NET Core, which does not count a thread's large arrays");
            }

            Assert.That(measured.Bytes, Is.GreaterThanOrEqualTo(length).And.LessThan(length + 64));
        }

        [Test]
        public void what_other_threads_allocate_does_not_count()
        {
            bool stop = false;
            Thread other = new Thread(() =>
            {
                while (!Volatile.Read(ref stop))
                {
                    sink = new byte[1000];
                }
            });
            other.Start();
            try
            {
                int count = 0;
                AllocationAssert.Zero(() => count++, repeats: 1000);
            }
            finally
            {
                Volatile.Write(ref stop, true);
                other.Join();
            }
        }

        [Test]
        public void a_collection_meanwhile_changes_nothing()
        {
            AllocationMeasurement measured = AllocationMeter.Measure(() =>
            {
                sink = new byte[1000];
                GC.Collect();
                sink = new byte[1000];
            });
            Assert.That(measured.Bytes, Is.GreaterThanOrEqualTo(2000).And.LessThan(2300));
        }

        [Test]
        public void zero_fails_for_a_single_small_object_and_says_how_much()
        {
            AllocationAssertException failure =
                Assert.Throws<AllocationAssertException>(() => AllocationAssert.Zero(() => sink = new object()));
            Assert.That(failure.Bytes, Is.GreaterThan(0).And.LessThanOrEqualTo(32));
            StringAssert.Contains(failure.Bytes + " bytes", failure.Message);
        }

        [Test]
        public void zero_lets_first_runs_allocate_but_no_later_one()
        {
            int runs = 0;
            AllocationAssert.Zero(() => Allocate(runs++ == 0), warmUps: 1, repeats: 5);
            runs = 0;
            Assert.Throws<AllocationAssertException>(
                () => AllocationAssert.Zero(() => Allocate(runs++ == 4), warmUps: 1, repeats: 5));
        }

        [Test]
        public void exceptions_of_the_action_come_through()
        {
            Assert.Throws<InvalidOperationException>(
                () => AllocationMeter.Measure(() => throw new InvalidOperationException()));
            Assert.Throws<ArgumentNullException>(() => AllocationMeter.Measure(null!));
            Assert.Throws<ArgumentNullException>(() => AllocationAssert.Zero(null!));
            Assert.Throws<ArgumentOutOfRangeException>(() => AllocationAssert.Zero(() => { }, repeats: 0));
        }

        private static void Allocate(bool really)
        {
            if (really)
            {
                sink = new object();
            }
        }
    }
}
