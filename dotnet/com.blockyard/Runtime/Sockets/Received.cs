namespace Blockyard.Sockets
{
    /// <summary>One received datagram: how long, and from whom.</summary>
    public readonly struct Received
    {
        internal Received(in SocketAddr from, int length, bool isTruncated)
        {
            From = from;
            Length = length;
            IsTruncated = isTruncated;
        }

        /// <summary>The sender.</summary>
        public SocketAddr From { get; }

        /// <summary>Bytes that were stored; 0 for an empty datagram.</summary>
        public int Length { get; }

        /// <summary>Whether the datagram was longer than its buffer; the rest is lost.</summary>
        public bool IsTruncated { get; }
    }
}
