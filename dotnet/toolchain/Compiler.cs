// The C# compiler's command line over Roslyn's library, for machines without the .NET SDK.
//
// Debian's compiler, mcs, supports only C# 7.2, without the `unmanaged` constraint. It compiles this file, and this
// file compiles everything else. The options are those of csc (-target, -out, -reference, -langversion, ...). With
// -each FILE it compiles several assemblies in one process, which saves starting it: the file has an argument a line,
// and an empty line behind the last one of each assembly. It ends at the first that fails.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Emit;
using Microsoft.CodeAnalysis.Text;

internal static class Driver
{
    private static readonly Dictionary<string, MetadataReference> Known = new Dictionary<string, MetadataReference>();

    private static int Main(string[] args)
    {
        if (args.Length != 2 || args[0] != "-each")
        {
            return Compile(args);
        }

        List<string> arguments = new List<string>();
        foreach (string line in File.ReadLines(args[1]))
        {
            if (line.Length > 0)
            {
                arguments.Add(line);
                continue;
            }

            int code = Compile(arguments);
            if (code != 0)
            {
                return code;
            }

            arguments.Clear();
        }

        return 0;
    }

    private static int Compile(IEnumerable<string> args)
    {
        string folder = Directory.GetCurrentDirectory();
        CSharpCommandLineArguments options = CSharpCommandLineParser.Default.Parse(args, folder, null, null);
        if (options.Errors.Any())
        {
            return Report(options.Errors);
        }

        List<SyntaxTree> trees = new List<SyntaxTree>();
        foreach (CommandLineSourceFile source in options.SourceFiles)
        {
            using (FileStream stream = File.OpenRead(source.Path))
            {
                SourceText text = SourceText.From(stream, Encoding.UTF8, canBeEmbedded: false);
                trees.Add(CSharpSyntaxTree.ParseText(text, options.ParseOptions, source.Path));
            }
        }

        List<MetadataReference> references = new List<MetadataReference>();
        foreach (CommandLineReference reference in options.MetadataReferences)
        {
            if (!File.Exists(reference.Reference))
            {
                Console.Error.WriteLine("error: reference not found: " + reference.Reference);
                return 1;
            }

            // The same object again, because Roslyn keeps what it read of it.
            if (!Known.TryGetValue(reference.Reference, out MetadataReference known))
            {
                known = MetadataReference.CreateFromFile(reference.Reference, reference.Properties);
                Known.Add(reference.Reference, known);
            }

            references.Add(known);
        }

        CSharpCompilation compilation = CSharpCompilation.Create(
            options.CompilationName ?? Path.GetFileNameWithoutExtension(options.OutputFileName),
            trees, references, options.CompilationOptions);
        string target = Path.Combine(options.OutputDirectory, options.OutputFileName);
        EmitOptions emit = options.EmitOptions
            .WithDebugInformationFormat(DebugInformationFormat.PortablePdb)
            .WithPdbFilePath(Path.ChangeExtension(target, ".pdb"));

        // Writes temporary files and renames them, so that a failed compilation keeps the previous output.
        using (MemoryStream assembly = new MemoryStream())
        using (MemoryStream symbols = new MemoryStream())
        using (MemoryStream documentation = new MemoryStream())
        {
            EmitResult result = compilation.Emit(
                assembly, symbols, options.DocumentationPath == null ? null : documentation, null,
                options.ManifestResources, emit);
            int code = Report(result.Diagnostics);
            if (!result.Success || code != 0)
            {
                return 1;
            }

            Write(target, assembly);
            Write(Path.ChangeExtension(target, ".pdb"), symbols);
            if (options.DocumentationPath != null)
            {
                Write(options.DocumentationPath, documentation);
            }
        }

        return 0;
    }

    private static void Write(string path, MemoryStream content)
    {
        string beside = path + ".new";
        File.WriteAllBytes(beside, content.ToArray());
        File.Delete(path);
        File.Move(beside, path);
    }

    private static int Report(IEnumerable<Diagnostic> diagnostics)
    {
        int code = 0;
        foreach (Diagnostic diagnostic in diagnostics)
        {
            if (diagnostic.Severity < DiagnosticSeverity.Warning || diagnostic.IsSuppressed)
            {
                continue;
            }

            Console.Error.WriteLine(diagnostic.ToString());
            code |= diagnostic.Severity == DiagnosticSeverity.Error || diagnostic.IsWarningAsError ? 1 : 0;
        }

        return code;
    }
}
