using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
#if NET8_0_OR_GREATER
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;
#endif
using System.Text.RegularExpressions;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using Blockyard.Sockets;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>What the packages promise: no dependency, no clash with Unity's names, complete Unity
    /// metadata.</summary>
    [TestFixture]
    public class PackageTests
    {
        private static readonly Assembly[] Libraries =
        {
            typeof(UnmanagedMemory).Assembly, typeof(UdpSocket).Assembly, typeof(AllocationMeter).Assembly,
        };

        /// <summary>Public types of Unity.Collections and Unity.Collections.LowLevel.Unsafe that a user is likely to
        /// import.</summary>
        private static readonly string[] UnityNames =
        {
            "Allocator", "AllocatorManager", "DisposeSentinel", "FixedList", "NativeArray", "NativeArrayOptions",
            "NativeHashMap", "NativeHashSet", "NativeLeakDetection", "NativeLeakDetectionMode", "NativeList",
            "NativeParallelHashMap", "NativeQueue", "NativeReference", "NativeSlice", "NativeStream", "NativeText",
            "RewindableAllocator", "UnsafeAppendBuffer", "UnsafeHashMap", "UnsafeList", "UnsafePtrList",
            "UnsafeRingQueue", "UnsafeStream", "UnsafeText", "UnsafeUtility", "AtomicSafetyHandle", "MemoryLabel",
            "Baselib", "Object", "Component", "Time", "Debug", "Random", "Application",
        };

        [Test]
        public void no_public_name_is_also_one_of_Unity_s()
        {
            foreach (Type type in Libraries.SelectMany(library => library.GetExportedTypes()))
            {
                CollectionAssert.DoesNotContain(UnityNames, type.Name.Split('`')[0]);
            }
        }

        [Test]
        public void nothing_is_referenced_but_the_runtime_and_one_another()
        {
            foreach (AssemblyName reference in Libraries.SelectMany(library => library.GetReferencedAssemblies()))
            {
                StringAssert.IsMatch(@"^(mscorlib|netstandard|System(\..+)?|Blockyard\.Memory)$", reference.Name);
            }

            AssemblyName[] ofMemory = typeof(UnmanagedMemory).Assembly.GetReferencedAssemblies();
            CollectionAssert.DoesNotContain(ofMemory.Select(name => name.Name), "Blockyard.Sockets");
        }

#if NET8_0_OR_GREATER
        [Test]
        public void the_build_for_Mono_uses_no_type_that_netstandard_2_1_lacks()
        {
            // .NET's netstandard.dll forwards exactly the types of netstandard 2.1. It does not list their members.
            HashSet<string> standard = TypesForwardedBy(
                Path.Combine(Path.GetDirectoryName(typeof(object).Assembly.Location)!, "netstandard.dll"));
            Assert.That(standard.Count, Is.GreaterThan(2000));
            string here = Path.GetDirectoryName(typeof(PackageTests).Assembly.Location)!;
            foreach (Assembly library in Libraries)
            {
                string built = Path.Combine(here, "..", "mono", Path.GetFileName(library.Location));
                if (!File.Exists(built))
                {
                    Assert.Ignore("this runtime has no build for Mono next to its own");
                }

                List<string> used = TypesUsedBy(built);
                Assert.That(used.Count, Is.GreaterThan(10));
                CollectionAssert.IsSubsetOf(used, standard, built);
            }
        }

        private static HashSet<string> TypesForwardedBy(string path)
        {
            using PEReader file = new PEReader(File.OpenRead(path));
            MetadataReader reader = file.GetMetadataReader();
            HashSet<string> names = new HashSet<string>();
            foreach (ExportedTypeHandle handle in reader.ExportedTypes)
            {
                ExportedType type = reader.GetExportedType(handle);
                if (type.IsForwarder)
                {
                    names.Add(reader.GetString(type.Namespace) + "." + reader.GetString(type.Name));
                }
            }

            return names;
        }

        /// <summary>The types of the runtime that an assembly uses, without the libraries' own. A nested type counts as
        /// its outermost type.</summary>
        private static List<string> TypesUsedBy(string path)
        {
            using PEReader file = new PEReader(File.OpenRead(path));
            MetadataReader reader = file.GetMetadataReader();
            List<string> names = new List<string>();
            foreach (TypeReferenceHandle handle in reader.TypeReferences)
            {
                TypeReference type = reader.GetTypeReference(handle);
                string space = reader.GetString(type.Namespace);
                if (type.ResolutionScope.Kind == HandleKind.AssemblyReference
                    && !space.StartsWith("Blockyard", StringComparison.Ordinal))
                {
                    names.Add(space + "." + reader.GetString(type.Name));
                }
            }

            return names;
        }
#endif

        [Test]
        public void every_file_of_the_Unity_package_has_its_meta_file_with_an_id_of_its_own()
        {
            string package = PackageFolder();
            HashSet<string> ids = new HashSet<string>();
            foreach (string path in Directory.GetFileSystemEntries(package, "*", SearchOption.AllDirectories))
            {
                string relative = path.Substring(package.Length + 1).Replace('\\', '/');
                if (relative.EndsWith(".meta", StringComparison.Ordinal))
                {
                    string asset = path.Substring(0, path.Length - ".meta".Length);
                    Assert.IsTrue(File.Exists(asset) || Directory.Exists(asset), relative + " has no asset");
                }
                else if (!relative.Split('/').Any(part => part.EndsWith("~", StringComparison.Ordinal)))
                {
                    Assert.IsTrue(File.Exists(path + ".meta"), relative + " has no meta file: run dotnet/unity-meta");
                    Match id = Regex.Match(
                        File.ReadAllText(path + ".meta"), "^guid: ([0-9a-f]{32})$", RegexOptions.Multiline);
                    Assert.IsTrue(id.Success && ids.Add(id.Groups[1].Value), relative);
                }
            }

            Assert.That(ids.Count, Is.GreaterThan(50));
        }

        [Test]
        public void the_Unity_assemblies_are_those_of_the_projects()
        {
            string package = PackageFolder();
            foreach (string name in new[] { "Memory", "Diagnostics", "Sockets" })
            {
                string definition = File.ReadAllText(
                    Path.Combine(package, "Runtime", name, "Blockyard." + name + ".asmdef"));
                StringAssert.Contains("\"name\": \"Blockyard." + name + "\"", definition);
                StringAssert.Contains("\"allowUnsafeCode\": true", definition);
                string project = File.ReadAllText(
                    Path.Combine(package, "..", "projects", "Blockyard." + name, "Blockyard." + name + ".csproj"));
                StringAssert.Contains("com.blockyard/Runtime/" + name + "/", project);
            }

            StringAssert.Contains("\"UNITY_INCLUDE_TESTS\"", File.ReadAllText(
                Path.Combine(package, "Tests", "Runtime", "Blockyard.Tests.asmdef")));
            StringAssert.Contains("Samples~/", File.ReadAllText(Path.Combine(package, "package.json")));
        }

        private static string PackageFolder()
        {
            string? folder = Path.GetDirectoryName(typeof(PackageTests).Assembly.Location);
            while (folder != null && !File.Exists(Path.Combine(folder, "com.blockyard", "package.json")))
            {
                folder = Path.GetDirectoryName(folder);
            }

            return Path.Combine(folder ?? throw new DirectoryNotFoundException("com.blockyard"), "com.blockyard");
        }
    }
}
