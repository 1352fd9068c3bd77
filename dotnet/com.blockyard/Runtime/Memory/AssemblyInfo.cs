using System.Runtime.CompilerServices;

// For prices of pages that no test can make the kernel ask.
[assembly: InternalsVisibleTo("Blockyard.Tests")]
