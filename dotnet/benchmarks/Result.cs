using System;
using System.Collections.Generic;
using System.Globalization;

namespace Blockyard.Benchmarks
{
    /// <summary>Prints the results of a process for run-benchmarks: lines with a name and a number.</summary>
    internal static class Result
    {
        private static readonly Dictionary<string, List<double>> Samples = new Dictionary<string, List<double>>();

        internal static void Print(string name, double value) =>
            Console.WriteLine(name + " " + value.ToString("R", CultureInfo.InvariantCulture));

        /// <summary>Adds a measurement. <see cref="PrintMedians"/> prints the median of those with its name.</summary>
        internal static void Add(string name, double value)
        {
            if (!Samples.TryGetValue(name, out List<double>? values))
            {
                values = new List<double>();
                Samples.Add(name, values);
            }

            values.Add(value);
        }

        internal static void PrintMedians()
        {
            foreach (KeyValuePair<string, List<double>> one in Samples)
            {
                one.Value.Sort();
                Print(one.Key, one.Value[one.Value.Count / 2]);
            }
        }
    }
}
