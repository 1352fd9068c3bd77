using System.Runtime.CompilerServices;

// For fuzzing what the kernel writes, which no test can make the kernel write.
[assembly: InternalsVisibleTo("Blockyard.Tests")]
