namespace Blockyard.Memory
{
    /// <summary>The tags of a thread at one moment (<see cref="AllocationTag.Current"/>). The default is no
    /// tag.</summary>
    public readonly struct AllocationTagPath
    {
        internal readonly uint Number;

        internal AllocationTagPath(uint number) => Number = number;
    }
}
