using System;
using System.Collections.Generic;
using System.Globalization;

namespace Blockyard.Benchmarks
{
    /// <summary>Prints the results of a process for run-benchmarks: lines with a name and a number.</summary>
    internal static class Result
    {
        internal static void Print(string name, double value) =>
            Console.WriteLine(name + " " + value.ToString("R", CultureInfo.InvariantCulture));

        internal static double Median(List<double> values)
        {
            values.Sort();
            return values[values.Count / 2];
        }
    }
}
