using System.Net;
using Blockyard.Sockets;
using UnityEngine;

namespace Blockyard.Samples
{
    /// <summary>Answers every datagram, on the main thread, without garbage.</summary>
    public sealed class UdpServerBehaviour : MonoBehaviour
    {
        private readonly ClientTable<int> clients = new ClientTable<int>();
        private UdpSocket socket;
        private DatagramBatch incoming;
        private DatagramBatch outgoing;

        private void OnEnable()
        {
            socket = UdpSocket.Bind(new IPEndPoint(IPAddress.Any, 7777));
            incoming = new DatagramBatch();
            outgoing = new DatagramBatch();
            Debug.Log("serving by " + socket.Backend);
        }

        private void Update()
        {
            while (socket.ReceiveBatch(incoming) > 0)
            {
                outgoing.Clear();
                for (int i = 0; i < incoming.Count; i++)
                {
                    SocketAddr from = incoming.AddressOf(i);
                    clients.TryGet(from, out int seen);
                    clients[from] = seen + 1;
                    outgoing.TryAdd(incoming[i], from);
                }

                socket.SendBatch(outgoing);
            }
        }

        private void OnDisable()
        {
            socket.Dispose();
            incoming.Dispose();
            outgoing.Dispose();
        }
    }
}
