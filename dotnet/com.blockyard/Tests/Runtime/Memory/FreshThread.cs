using System;
using System.Threading;

namespace Blockyard.Tests
{
    /// <summary>Runs a test on a new thread, whose Temp region is unused.</summary>
    internal static class FreshThread
    {
        private static readonly TimeSpan Deadline = TimeSpan.FromMinutes(5);

        internal static void OnFreshThread(Action test)
        {
            Exception? failure = null;
            Thread thread = new Thread(() =>
            {
                try
                {
                    test();
                }
                catch (Exception exception)
                {
                    failure = exception;
                }
            });
            thread.IsBackground = true;
            thread.Start();
            if (!thread.Join(Deadline))
            {
                throw new TimeoutException(
                    "The test's thread did not end within " + Deadline.TotalMinutes + " minutes.");
            }

            if (failure != null)
            {
                throw new Exception("On the test's thread: " + failure.Message, failure);
            }
        }
    }
}
