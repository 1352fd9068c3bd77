using System;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>The switch for checks. run-tests starts processes with each setting.</summary>
    [TestFixture]
    public class ChecksTests
    {
        /// <summary>Skips a test that needs checks.</summary>
        internal static void Need()
        {
            if (!Checks.AreOn)
            {
                Assert.Ignore("this process runs without checks");
            }
        }

#if !UNITY_5_3_OR_NEWER
        [SetUp]
        public void SetTheSwitch()
        {
            string? value = Environment.GetEnvironmentVariable("BLOCKYARD_TEST_CHECKS_SWITCH");
            if (value != null)
            {
                AppContext.SetSwitch("Blockyard.Checks", value == "1");
            }
        }

        [Test]
        public void checks_are_on_if_the_environment_or_else_the_switch_says_so()
        {
            string? setting = Environment.GetEnvironmentVariable("BLOCKYARD_CHECKS")
                ?? Environment.GetEnvironmentVariable("BLOCKYARD_TEST_CHECKS_SWITCH");
            Assert.AreEqual(setting == "1", Checks.AreOn);
            bool detectsLeaks = setting == "1" && Environment.GetEnvironmentVariable("BLOCKYARD_LEAKS") == null;
            Assert.AreEqual(detectsLeaks ? LeakMode.On : LeakMode.Off, LeakDetection.Mode);
        }
#endif
    }
}
