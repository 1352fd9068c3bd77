using System;
using System.Collections.Generic;
using Blockyard.Memory;

namespace Blockyard.Tests
{
    /// <summary>Sets a mode of leak detection and collects the reports until it is disposed.</summary>
    internal sealed class CapturedLeaks : IDisposable
    {
        private readonly List<string> texts = new List<string>();
        private readonly LeakMode modeBefore = LeakDetection.Mode;
        private readonly Action<string>? reporterBefore = LeakDetection.Reporter;

        internal CapturedLeaks(LeakMode mode)
        {
            LeakDetection.Mode = mode;
            LeakDetection.Reporter = text =>
            {
                lock (texts)
                {
                    texts.Add(text);
                }
            };
        }

        internal string All
        {
            get
            {
                lock (texts)
                {
                    return string.Join("\n", texts.ToArray());
                }
            }
        }

        internal int CountOf(string part)
        {
            lock (texts)
            {
                return texts.FindAll(text => text.Contains(part)).Count;
            }
        }

        public void Dispose()
        {
            LeakDetection.Reporter = reporterBefore;
            LeakDetection.Mode = modeBefore;
        }
    }
}
