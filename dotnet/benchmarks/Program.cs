// One measurement per process. ../run-benchmarks runs them interleaved and prints the ratios.
using System;

namespace Blockyard.Benchmarks
{
    internal static class Program
    {
        private const string Usage =
            "usage: Benchmarks objects KIND COUNT | lifetimes LAYOUT | containers ROUNDS | study DIR [once|prepared]"
            + " | packets ADDRESS | outbound FIRST-ADDRESS DEVICE | frame ADDRESS CLIENTS";

        private static int Main(string[] args)
        {
            switch (args.Length == 0 ? string.Empty : args[0])
            {
                case "objects" when args.Length == 3:
                    ObjectsBenchmark.Run(args[1], int.Parse(args[2]));
                    break;
                case "lifetimes" when args.Length == 2:
                    LifetimesBenchmark.Run(int.Parse(args[1]));
                    break;
                case "containers" when args.Length == 2:
                    ContainersBenchmark.Run(int.Parse(args[1]));
                    break;
                case "study" when args.Length == 2 || args.Length == 3:
                    LifetimesStudy.Run(args[1], args.Length == 3 ? args[2] : null);
                    break;
                case "packets" when args.Length == 2:
                    PacketsBenchmark.Run(args[1]);
                    break;
                case "outbound" when args.Length == 3:
                    PacketsBenchmark.RunOutbound(args[1], args[2]);
                    break;
                case "frame" when args.Length == 3:
                    FrameBenchmark.Run(args[1], int.Parse(args[2]));
                    break;
                default:
                    Console.Error.WriteLine(Usage);
                    return 2;
            }

            Result.PrintMedians();
            return 0;
        }
    }
}
