using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using System.Reflection.Emit;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>The types that Unity's Burst can compile use no managed type, static field or exception. Burst itself
    /// is not there, so their instructions are read.</summary>
    [TestFixture]
    public class BurstSubsetTests
    {
        private static readonly Type[] Subset = { typeof(BumpRegion), typeof(Ptr<int>), typeof(Handle<int>) };

        /// <summary>Instructions that make or need an object, or a static field.</summary>
        private static readonly HashSet<OpCode> Managed = new HashSet<OpCode>
        {
            OpCodes.Newarr, OpCodes.Box, OpCodes.Ldstr, OpCodes.Ldsfld, OpCodes.Ldsflda, OpCodes.Stsfld,
            OpCodes.Castclass, OpCodes.Isinst, OpCodes.Throw, OpCodes.Callvirt, OpCodes.Ldftn, OpCodes.Ldvirtftn,
            OpCodes.Calli,
        };

        private static readonly Dictionary<short, OpCode> Codes = typeof(OpCodes).GetFields()
            .Select(field => (OpCode)field.GetValue(null)!).ToDictionary(code => code.Value);

        [Test]
        public void the_subset_for_Burst_has_no_managed_type_in_its_path()
        {
            int methods = 0;
            foreach (Type type in Subset)
            {
                Assert.IsTrue(type.IsValueType);
                foreach (MethodBase method in MethodsOf(type))
                {
                    CollectionAssert.IsEmpty(ManagedParts(method), type.Name + "." + method.Name);
                    methods++;
                }
            }

            Assert.That(methods, Is.GreaterThan(15));
        }

        [Test]
        public void a_type_outside_of_the_subset_is_recognised()
        {
            MethodBase method = typeof(UnmanagedMemory).GetMethod("MallocSlowly", BindingFlags.NonPublic
                | BindingFlags.Static)!;
            CollectionAssert.IsNotEmpty(ManagedParts(method));
        }

        /// <summary>All but those that a job cannot call: they take or give an object.</summary>
        private static IEnumerable<MethodBase> MethodsOf(Type type)
        {
            const BindingFlags All = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance
                | BindingFlags.Static | BindingFlags.DeclaredOnly;
            return type.GetConstructors(All).Cast<MethodBase>().Concat(type.GetMethods(All)
                .Where(method => method.Name != "ToString" && method.Name != "GetHashCode")
                .Where(method => method.GetParameters().All(parameter => parameter.ParameterType != typeof(object))));
        }

        private static List<string> ManagedParts(MethodBase method)
        {
            List<string> found = new List<string>();
            MethodBody body = method.GetMethodBody()!;
            found.AddRange(body.LocalVariables.Select(local => local.LocalType!)
                .Where(type => !type.IsValueType && !type.IsPointer && !type.IsByRef && !type.IsGenericParameter)
                .Select(type => "a local " + type));
            byte[] code = body.GetILAsByteArray()!;
            Type[]? ofType = method.DeclaringType!.IsGenericType ? method.DeclaringType.GetGenericArguments() : null;
            Type[]? ofMethod = method.IsGenericMethod ? method.GetGenericArguments() : null;
            for (int at = 0; at < code.Length;)
            {
                short value = code[at++];
                if (value == 0xFE)
                {
                    value = unchecked((short)(0xFE00 | code[at++]));
                }

                OpCode instruction = Codes[value];
                if (Managed.Contains(instruction))
                {
                    found.Add(instruction.Name!);
                }

                if (instruction == OpCodes.Call || instruction == OpCodes.Newobj)
                {
                    MethodBase called = method.Module.ResolveMethod(BitConverter.ToInt32(code, at), ofType, ofMethod)!;
                    Type type = called.DeclaringType!.IsGenericType
                        ? called.DeclaringType.GetGenericTypeDefinition()
                        : called.DeclaringType;
                    if (!Subset.Any(own => type == (own.IsGenericType ? own.GetGenericTypeDefinition() : own)))
                    {
                        found.Add(instruction.Name + " " + type + "." + called.Name);
                    }
                }

                at += OperandSize(instruction, code, at);
            }

            return found;
        }

        private static int OperandSize(OpCode instruction, byte[] code, int at)
        {
            switch (instruction.OperandType)
            {
                case OperandType.InlineNone:
                    return 0;
                case OperandType.ShortInlineBrTarget:
                case OperandType.ShortInlineI:
                case OperandType.ShortInlineVar:
                    return 1;
                case OperandType.InlineVar:
                    return 2;
                case OperandType.InlineI8:
                case OperandType.InlineR:
                    return 8;
                case OperandType.InlineSwitch:
                    return 4 + (4 * BitConverter.ToInt32(code, at));
                default:
                    return 4;
            }
        }
    }
}
