using System;
using System.Threading;

namespace Blockyard.Tests
{
    /// <summary>A thread that keeps what its action throws.</summary>
    internal sealed class FreshThread
    {
        private static readonly TimeSpan Deadline = TimeSpan.FromMinutes(2);

        private readonly Thread thread;

        internal FreshThread(Action action)
        {
            thread = new Thread(() =>
            {
                try
                {
                    action();
                }
                catch (Exception exception)
                {
                    Failure = exception;
                }
            });
            thread.IsBackground = true;
            thread.Start();
        }

        internal Exception? Failure { get; private set; }

        internal bool IsAlive => thread.IsAlive;

        /// <summary>Runs a test on a new thread, whose Temp region is unused.</summary>
        internal static void OnFreshThread(Action test) => new FreshThread(test).JoinWithoutFailure();

        internal void Join()
        {
            if (!thread.Join(Deadline))
            {
                throw new TimeoutException(
                    "The test's thread did not end within " + Deadline.TotalMinutes + " minutes.");
            }
        }

        internal void JoinWithoutFailure()
        {
            Join();
            if (Failure != null)
            {
                throw new Exception("On the test's thread: " + Failure.Message, Failure);
            }
        }
    }
}
