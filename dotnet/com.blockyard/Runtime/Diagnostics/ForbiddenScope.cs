using System.Runtime.CompilerServices;

namespace Blockyard.Diagnostics
{
    /// <summary>A scope that must not allocate (<see cref="Forbid"/>). The default does nothing.</summary>
    public readonly ref struct ForbiddenScope
    {
        private readonly string? name;
        private readonly long before;

        internal ForbiddenScope(string name, long before)
        {
            this.name = name;
            this.before = before;
        }

        /// <summary>Ends the scope.</summary>
        /// <exception cref="AllocationAssertException">It allocated on the collected heap, checks are on and no
        /// recorder is there. An exception that leaves the scope is an allocation too, and is hidden by
        /// this one.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Dispose()
        {
            if (name != null)
            {
                Forbid.End(name, before);
            }
        }
    }
}
