using System;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Huge pages are requested while they are cheaper, and requests never lose more than the limit.</summary>
    [TestFixture]
    public class PageCostsTests
    {
        private const long HugePage = 2 * 1024 * 1024;
        private const long Small = 650000;
        private const long Cheap = 90000;
        private const long Expensive = 5300000;

        [Test]
        public void nothing_is_asked_for_before_the_price_of_small_pages_is_known()
        {
            PageCosts costs = new PageCosts(HugePage);
            Assert.IsFalse(costs.IsWorthAsking);
            costs.TookSmall(HugePage, Small);
            Assert.IsTrue(costs.IsWorthAsking);
        }

        [Test]
        public void cheap_ones_are_always_requested_and_a_single_expensive_one_changes_nothing()
        {
            PageCosts costs = new PageCosts(HugePage);
            costs.TookSmall(HugePage, Small);
            for (int i = 0; i < 1000; i++)
            {
                Assert.IsTrue(costs.IsWorthAsking, "at ask " + i);
                costs.Asked(given: true, i % 50 == 49 ? Expensive : Cheap);
            }
        }

        [TestCase(true)]
        [TestCase(false)]
        public void expensive_or_refused_ones_are_requested_rarely(bool given)
        {
            PageCosts costs = new PageCosts(HugePage);
            int asked = 0;
            const int Pages = 10000;
            for (int i = 0; i < Pages; i++)
            {
                if (costs.IsWorthAsking)
                {
                    asked++;
                    costs.Asked(given, Expensive);
                }
                else
                {
                    costs.TookSmall(HugePage, Small);
                }
            }

            Assert.Greater(asked, 20);
            Assert.Less(asked, Pages / 100);
        }

        [Test]
        public void old_gains_do_not_pay_for_many_expensive_ones()
        {
            PageCosts costs = new PageCosts(HugePage);
            costs.TookSmall(HugePage, Small);
            for (int i = 0; i < 10000; i++)
            {
                costs.Asked(given: true, Cheap);
            }

            int asked = 0;
            while (costs.IsWorthAsking)
            {
                costs.Asked(given: true, Expensive);
                asked++;
            }

            Assert.LessOrEqual(asked, 3);
        }

        [Test]
        public void small_pages_that_became_as_expensive_end_the_waiting()
        {
            PageCosts costs = new PageCosts(HugePage);
            costs.TookSmall(HugePage, Small);
            costs.Asked(given: true, Expensive);
            costs.TookSmall(HugePage, Small);
            Assert.IsFalse(costs.IsWorthAsking);
            for (int i = 0; i < 10; i++)
            {
                costs.TookSmall(HugePage, 7000000);
            }

            Assert.IsTrue(costs.IsWorthAsking);
        }

        [Test]
        public void a_few_expensive_small_pages_do_not_make_expensive_huge_ones_look_cheap()
        {
            PageCosts costs = new PageCosts(HugePage);
            for (int i = 0; i < 15; i++)
            {
                costs.TookSmall(HugePage, i % 3 == 0 ? 7000000 : Small);
            }

            while (costs.IsWorthAsking)
            {
                costs.Asked(given: true, Expensive);
            }

            costs.TookSmall(HugePage, 7000000);
            Assert.IsFalse(costs.IsWorthAsking);
        }

        [TestCase(HugePage)]
        [TestCase(64 * 1024)]
        public void at_any_prices_no_more_is_lost_than_a_twentieth_of_the_small_pages_time_and_one_ask(long bytes)
        {
            for (int seed = 0; seed < 200; seed++)
            {
                Random random = new Random(seed);
                PageCosts costs = new PageCosts(HugePage);
                long small = random.Next(1, 2000000);
                double gained = 0;
                double smallTime = 0;
                double mostExpensive = 0;
                int changeEvery = random.Next(1, 1000);
                double expensiveShare = random.NextDouble();
                for (int i = 0; i < 20000; i++)
                {
                    if (i % changeEvery == 0)
                    {
                        expensiveShare = random.NextDouble();
                    }

                    if (costs.IsWorthAsking)
                    {
                        bool given = random.Next(20) > 0;
                        long cost = random.NextDouble() < expensiveShare
                            ? small * random.Next(1, 60)
                            : small / random.Next(1, 10);
                        costs.Asked(given, cost);
                        gained += (given ? small : 0) - cost;
                        mostExpensive = Math.Max(mostExpensive, cost);
                    }
                    else
                    {
                        long time = small * bytes / HugePage;
                        costs.TookSmall(bytes, time);
                        smallTime += time;
                    }

                    // A tolerance of a thousandth for rounding to whole nanoseconds.
                    double mayBeLost = (smallTime * 1.001 / PageCosts.SmallPerLoss) + mostExpensive;
                    if (-gained > mayBeLost + 1)
                    {
                        Assert.Fail("seed " + seed + ", step " + i + ": lost " + -gained + " of " + mayBeLost);
                    }
                }
            }
        }
    }
}
