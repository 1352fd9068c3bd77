using System;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Huge pages are asked for while they are the cheaper ones, and asking never loses more than it may.</summary>
    [TestFixture]
    public class PageCostsTests
    {
        private const long HugePage = 2 * 1024 * 1024;
        private const long Small = 650000;
        private const long Cheap = 90000;
        private const long Dear = 5300000;

        [Test]
        public void nothing_is_asked_for_before_the_price_of_small_pages_is_known()
        {
            PageCosts costs = new PageCosts(HugePage);
            Assert.IsFalse(costs.IsWorthAsking);
            costs.TookSmall(HugePage, Small);
            Assert.IsTrue(costs.IsWorthAsking);
        }

        [Test]
        public void cheap_ones_are_asked_for_each_time_and_a_dear_one_among_many_ends_nothing()
        {
            PageCosts costs = new PageCosts(HugePage);
            costs.TookSmall(HugePage, Small);
            for (int i = 0; i < 1000; i++)
            {
                Assert.IsTrue(costs.IsWorthAsking, "at ask " + i);
                costs.Asked(given: true, i % 50 == 49 ? Dear : Cheap);
            }
        }

        [TestCase(true)]
        [TestCase(false)]
        public void dear_or_refused_ones_are_asked_for_now_and_then(bool given)
        {
            PageCosts costs = new PageCosts(HugePage);
            int asked = 0;
            const int Pages = 10000;
            for (int i = 0; i < Pages; i++)
            {
                if (costs.IsWorthAsking)
                {
                    asked++;
                    costs.Asked(given, Dear);
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
        public void gains_of_long_ago_do_not_pay_for_many_dear_ones()
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
                costs.Asked(given: true, Dear);
                asked++;
            }

            Assert.LessOrEqual(asked, 3);
        }

        [Test]
        public void small_pages_that_have_become_as_dear_end_the_waiting()
        {
            PageCosts costs = new PageCosts(HugePage);
            costs.TookSmall(HugePage, Small);
            costs.Asked(given: true, Dear);
            costs.TookSmall(HugePage, Small);
            Assert.IsFalse(costs.IsWorthAsking);
            for (int i = 0; i < 10; i++)
            {
                costs.TookSmall(HugePage, 7000000);
            }

            Assert.IsTrue(costs.IsWorthAsking);
        }

        [Test]
        public void a_few_small_pages_that_were_dear_do_not_make_dear_huge_ones_look_cheap()
        {
            PageCosts costs = new PageCosts(HugePage);
            for (int i = 0; i < 15; i++)
            {
                costs.TookSmall(HugePage, i % 3 == 0 ? 7000000 : Small);
            }

            while (costs.IsWorthAsking)
            {
                costs.Asked(given: true, Dear);
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
                double dearest = 0;
                int changeEvery = random.Next(1, 1000);
                double dearShare = random.NextDouble();
                for (int i = 0; i < 20000; i++)
                {
                    if (i % changeEvery == 0)
                    {
                        dearShare = random.NextDouble();
                    }

                    if (costs.IsWorthAsking)
                    {
                        bool given = random.Next(20) > 0;
                        long cost = random.NextDouble() < dearShare ? small * random.Next(1, 60) : small / random.Next(1, 10);
                        costs.Asked(given, cost);
                        gained += (given ? small : 0) - cost;
                        dearest = Math.Max(dearest, cost);
                    }
                    else
                    {
                        long time = small * bytes / HugePage;
                        costs.TookSmall(bytes, time);
                        smallTime += time;
                    }

                    // A thousandth for whole nanoseconds of a division.
                    double mayBeLost = (smallTime * 1.001 / PageCosts.SmallPerLoss) + dearest;
                    if (-gained > mayBeLost + 1)
                    {
                        Assert.Fail("seed " + seed + ", step " + i + ": lost " + -gained + " of " + mayBeLost);
                    }
                }
            }
        }
    }
}
