// Exchanges UDP datagrams with another program, socat, on loopback in both directions.
//
// Usage: SocatTalk. Needs socat. Exits with 1 when a message did not arrive.
using System;
using System.Diagnostics;
using System.Net;
using System.Text;
using Blockyard.Sockets;

namespace Blockyard.Examples
{
    internal static class SocatTalk
    {
        private const int Patience = 5000;

        private static int Main()
        {
            using (UdpSocket here = UdpSocket.Bind(new IPEndPoint(IPAddress.Loopback, 0)))
            {
                return SocatSpeaksFirst(here) && SocatEchoes(here) ? 0 : 1;
            }
        }

        /// <summary>socat sends its input to us and prints our replies.</summary>
        private static bool SocatSpeaksFirst(UdpSocket here)
        {
            using (Process? socat = Start("-t2 - UDP4:127.0.0.1:" + here.LocalAddress.Port))
            {
                if (socat == null)
                {
                    return false;
                }

                socat.StandardInput.Write("hello from socat");
                socat.StandardInput.Flush();
                byte[] buffer = new byte[1500];
                if (!here.Receive(buffer, Patience, out Received received))
                {
                    return Fail("socat's word did not come", socat);
                }

                Console.WriteLine(
                    "socat at " + received.From + " says: " + Encoding.ASCII.GetString(buffer, 0, received.Length));
                here.TrySend(Encoding.ASCII.GetBytes("hello from Blockyard"), received.From);
                char[] heard = new char["hello from Blockyard".Length];
                int length = socat.StandardOutput.ReadBlock(heard, 0, heard.Length);
                Console.WriteLine("socat heard: " + new string(heard, 0, length));
                socat.StandardInput.Close();
                Stop(socat);
                return new string(heard, 0, length) == "hello from Blockyard"
                    && Encoding.ASCII.GetString(buffer, 0, received.Length) == "hello from socat";
            }
        }

        /// <summary>socat echoes datagrams of many sizes.</summary>
        private static bool SocatEchoes(UdpSocket here)
        {
            int port;
            using (UdpSocket free = UdpSocket.Bind(new IPEndPoint(IPAddress.Loopback, 0)))
            {
                port = free.LocalAddress.Port;
            }

            using (Process? socat = Start("-b 65535 UDP4-LISTEN:" + port + ",bind=127.0.0.1 PIPE"))
            {
                if (socat == null)
                {
                    return false;
                }

                SocketAddr there = new SocketAddr(IPAddress.Loopback, port);
                byte[] buffer = new byte[65536];
                Received received = default;
                bool isUp = false;
                Stopwatch since = Stopwatch.StartNew();
                while (!isUp && since.ElapsedMilliseconds < Patience)
                {
                    // Until socat listens, datagrams to its port are refused. That is not an error.
                    here.TrySend(new byte[] { 1 }, there);
                    isUp = here.Receive(buffer, 50, out received);
                }

                while (here.Receive(buffer, 100, out _))
                {
                }

                Random random = new Random(1);
                int echoed = 0;
                foreach (int size in new[] { 1, 2, 64, 500, 1400, 9000, 30000 })
                {
                    byte[] sent = new byte[size];
                    random.NextBytes(sent);
                    here.TrySend(sent, there);
                    if (!here.Receive(buffer, Patience, out received) || received.From != there
                        || !sent.AsSpan().SequenceEqual(buffer.AsSpan(0, received.Length)))
                    {
                        return Fail("a datagram of " + size + " bytes did not come back as it was", socat);
                    }

                    echoed++;
                }

                Console.WriteLine("socat echoed " + echoed + " datagrams of 1 to 30,000 bytes");
                Stop(socat);
                return true;
            }
        }

        private static Process? Start(string arguments)
        {
            try
            {
                return Process.Start(new ProcessStartInfo("socat", arguments)
                {
                    RedirectStandardInput = true,
                    RedirectStandardOutput = true,
                    UseShellExecute = false,
                });
            }
            catch (System.ComponentModel.Win32Exception)
            {
                Console.Error.WriteLine("SocatTalk: socat can't be started; install it (apt-get install socat)");
                return null;
            }
        }

        private static bool Fail(string what, Process socat)
        {
            Console.Error.WriteLine("SocatTalk: " + what);
            Stop(socat);
            return false;
        }

        private static void Stop(Process socat)
        {
            if (!socat.WaitForExit(100))
            {
                socat.Kill();
                socat.WaitForExit();
            }
        }
    }
}
