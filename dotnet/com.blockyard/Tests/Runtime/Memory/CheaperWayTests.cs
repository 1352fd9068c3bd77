using System;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>The cheaper of two ways is used, whichever it is and however prices change.</summary>
    [TestFixture]
    public class CheaperWayTests
    {
        private const long Observation = 1000;

        [TestCase(100, 160)]
        [TestCase(160, 100)]
        public void each_is_tried_once_and_then_nearly_all_is_done_by_the_cheaper_one(long first, long second)
        {
            CheaperWay ways = new CheaperWay(Observation);
            int byExpensive = 0;
            const int Steps = 6500;
            for (int i = 0; i < Steps; i++)
            {
                bool bySecond = ways.TakeSecond;
                ways.Took(bySecond, Observation, bySecond ? second : first);
                byExpensive += bySecond == second > first ? 1 : 0;
            }

            Assert.That(
                byExpensive,
                Is.InRange((Steps / (CheaperWay.Between + 1)) - 2, (Steps / (CheaperWay.Between + 1)) + 2));
        }

        [Test]
        public void the_first_way_comes_first()
        {
            CheaperWay ways = new CheaperWay(Observation);
            Assert.IsFalse(ways.TakeSecond);
            ways.Took(bySecond: false, Observation - 1, 100);
            Assert.IsFalse(ways.TakeSecond, "before there was an observation");
            ways.Took(bySecond: false, 1, 0);
            Assert.IsTrue(ways.TakeSecond);
        }

        [Test]
        public void a_price_that_changed_is_found_out()
        {
            CheaperWay ways = new CheaperWay(Observation);
            for (int i = 0; i < 200; i++)
            {
                bool bySecond = ways.TakeSecond;
                ways.Took(bySecond, Observation, bySecond ? 100 : 160);
            }

            int byFirst = 0;
            for (int i = 0; i < 200; i++)
            {
                bool bySecond = ways.TakeSecond;
                ways.Took(bySecond, Observation, bySecond ? 100 : 20);
                byFirst += bySecond ? 0 : 1;
            }

            Assert.Greater(byFirst, 200 - CheaperWay.Between - 5);
        }

        [Test]
        public void one_that_was_expensive_by_chance_is_corrected_by_the_next()
        {
            CheaperWay ways = new CheaperWay(Observation);
            ways.Took(bySecond: false, Observation, 160);
            ways.Took(bySecond: true, Observation, 9999);
            Assert.IsFalse(ways.TakeSecond);
            int until = 0;
            while (!ways.TakeSecond)
            {
                ways.Took(bySecond: false, Observation, 160);
                until++;
            }

            Assert.LessOrEqual(until, CheaperWay.Between);
            ways.Took(bySecond: true, Observation, 100);
            Assert.IsTrue(ways.TakeSecond);

            // The way in use is expensive once: the other way gets a turn, until it is seen to cost more.
            ways.Took(bySecond: true, Observation, 500);
            Assert.IsFalse(ways.TakeSecond);
        }

        [Test]
        public void at_any_prices_little_more_is_paid_than_by_the_better_way_throughout()
        {
            for (int seed = 0; seed < 200; seed++)
            {
                Random random = new Random(seed);
                CheaperWay ways = new CheaperWay(Observation);
                long[] price = { random.Next(1, 1000), random.Next(1, 1000) };
                long paid = 0;
                const int Steps = 10000;
                for (int i = 0; i < Steps; i++)
                {
                    int way = ways.TakeSecond ? 1 : 0;
                    paid += price[way] * Observation;
                    ways.Took(way == 1, Observation, price[way] * Observation);
                }

                long best = Math.Min(price[0], price[1]) * Observation * Steps;
                long worst = Math.Max(price[0], price[1]) * Observation * ((Steps / CheaperWay.Between) + 2);
                Assert.LessOrEqual(paid, best + worst, "seed " + seed);
            }
        }
    }
}
