// Shapes of the parts of Unity that the package, its samples and its users touch, written from Unity's documentation.
// With them everything compiles in the tests, and the bridge to NativeArray runs, without Unity.
using System;
using System.Collections.Generic;

namespace UnityEngine
{
    public struct Vector3
    {
        public float X;
        public float Y;
        public float Z;
    }

    public class Transform
    {
        public Vector3 position { get; set; }
    }

    public class MonoBehaviour
    {
        public Transform transform { get; } = new Transform();
    }

    [AttributeUsage(AttributeTargets.Class)]
    public sealed class DefaultExecutionOrderAttribute : Attribute
    {
        public DefaultExecutionOrderAttribute(int order)
        {
            _ = order;
        }
    }

    public static class Debug
    {
        public static void Log(object message) => _ = message;

        public static void LogWarning(object message) => _ = message;
    }
}

namespace Unity.Burst
{
    [AttributeUsage(AttributeTargets.Struct | AttributeTargets.Method)]
    public sealed class BurstCompileAttribute : Attribute
    {
    }
}

namespace Unity.Jobs
{
    using System.Reflection;
    using Unity.Collections.LowLevel.Unsafe;

    public interface IJob
    {
        void Execute();
    }

    public static class IJobExtensions
    {
        public static void Run<T>(this T job)
            where T : struct, IJob
        {
            CheckFields(typeof(T));
            job.Execute();
        }

        /// <summary>What Unity's job debugger does in the editor.</summary>
        private static void CheckFields(Type type)
        {
            const BindingFlags All = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;
            foreach (FieldInfo field in type.GetFields(All))
            {
                if (field.IsDefined(typeof(NativeDisableUnsafePtrRestrictionAttribute), false))
                {
                    continue;
                }

                if (field.FieldType.IsPointer)
                {
                    throw new InvalidOperationException(type.Name + "." + field.Name + " uses unsafe pointers.");
                }

                if (field.FieldType.IsValueType && !field.FieldType.IsPrimitive)
                {
                    CheckFields(field.FieldType);
                }
            }
        }
    }
}

namespace Unity.Collections
{
    using Unity.Collections.LowLevel.Unsafe;

    public enum Allocator
    {
        Invalid,
        None,
        Temp,
        TempJob,
        Persistent,
    }

    public unsafe struct NativeArray<T>
        where T : struct
    {
        [NativeDisableUnsafePtrRestriction]
        internal void* Buffer;
        internal AtomicSafetyHandle Safety;

        public NativeArray(int length, Allocator allocator)
        {
            Buffer = null;
            Safety = default;
            Length = allocator == Allocator.Temp ? length : length;
        }

        public int Length { get; internal set; }

        public T this[int index]
        {
            get => At(index)[0];
            set => At(index)[0] = value;
        }

        private Span<T> At(int index)
        {
            AtomicSafetyHandle.CheckReadAndThrow(Safety);
            return System.Runtime.InteropServices.MemoryMarshal.Cast<byte, T>(new Span<byte>(
                (byte*)Buffer + (index * System.Runtime.InteropServices.Marshal.SizeOf<T>()),
                System.Runtime.InteropServices.Marshal.SizeOf<T>()));
        }
    }
}

namespace AOT
{
    [AttributeUsage(AttributeTargets.Method)]
    public sealed class MonoPInvokeCallbackAttribute : Attribute
    {
        public MonoPInvokeCallbackAttribute(Type type)
        {
            _ = type;
        }
    }
}

namespace Unity.Collections
{
    using System.Runtime.InteropServices;

    public static class AllocatorManager
    {
        private const int FirstUserIndex = 64;

        private static readonly List<(IntPtr State, TryFunction Function)> Registered =
            new List<(IntPtr State, TryFunction Function)>();

        public delegate int TryFunction(IntPtr allocatorState, ref Block block);

        public interface IAllocator : IDisposable
        {
            TryFunction Function { get; }

            AllocatorHandle Handle { get; set; }

            Allocator ToAllocator { get; }

            bool IsCustomAllocator { get; }

            bool IsAutoDispose { get; }

            int Try(ref Block block);
        }

        internal static AllocatorHandle Register(IntPtr state, TryFunction function)
        {
            Registered.Add((state, function));
            return new AllocatorHandle { Index = FirstUserIndex + Registered.Count - 1 };
        }

        internal static IntPtr Call(AllocatorHandle handle, IntPtr pointer, int had, int items, int size)
        {
            (IntPtr state, TryFunction function) = Registered[handle.Index - FirstUserIndex];
            Block block = default;
            block.Range = new Range { Pointer = pointer, Items = items, Allocator = handle };
            block.BytesPerItem = size;
            block.AllocatedItems = had;
            block.Alignment = 64;
            return function(state, ref block) == 0
                ? block.Range.Pointer
                : throw new ArgumentException("failed to allocate");
        }

        public struct AllocatorHandle : IDisposable
        {
            internal int Index;

            public readonly Allocator ToAllocator => (Allocator)Index;

            public readonly bool IsCustomAllocator => Index >= FirstUserIndex;

            public void Dispose() => Registered[Index - FirstUserIndex] = default;
        }

        public struct Range
        {
            public IntPtr Pointer;
            public int Items;
            public AllocatorHandle Allocator;
        }

        public struct Block
        {
            public Range Range;
            public int BytesPerItem;
            public int AllocatedItems;
            public byte Log2Alignment;

            public readonly long Bytes => (long)BytesPerItem * Range.Items;

            public readonly long AllocatedBytes => (long)BytesPerItem * AllocatedItems;

            public int Alignment
            {
                readonly get => 1 << Log2Alignment;
                set => Log2Alignment = (byte)Math.Log(value, 2);
            }
        }
    }

    public unsafe struct AllocatorHelper<T> : IDisposable
        where T : unmanaged, AllocatorManager.IAllocator
    {
        private readonly T* allocator;

        public AllocatorHelper(Allocator backing)
        {
            _ = backing;
            allocator = (T*)Marshal.AllocHGlobal(sizeof(T));
            *allocator = default;
            allocator->Handle = AllocatorManager.Register((IntPtr)allocator, allocator->Function);
        }

        public ref T Allocator => ref *allocator;

        public void Dispose() => Marshal.FreeHGlobal((IntPtr)allocator);
    }

    public unsafe struct NativeList<T> : IDisposable
        where T : unmanaged
    {
        private readonly AllocatorManager.AllocatorHandle handle;
        private T* items;

        public NativeList(int initialCapacity, AllocatorManager.AllocatorHandle allocator)
        {
            handle = allocator;
            items = (T*)AllocatorManager.Call(handle, IntPtr.Zero, 0, initialCapacity, sizeof(T));
            Length = 0;
            Capacity = initialCapacity;
        }

        public int Length { get; private set; }

        public int Capacity { get; private set; }

        public T this[int index] => items[index];

        public void Add(in T item)
        {
            if (Length == Capacity)
            {
                int more = Capacity * 2;
                items = (T*)AllocatorManager.Call(handle, (IntPtr)items, Capacity, more, sizeof(T));
                Capacity = more;
            }

            items[Length++] = item;
        }

        public void Dispose()
        {
            AllocatorManager.Call(handle, (IntPtr)items, Capacity, 0, sizeof(T));
            items = null;
        }
    }
}

namespace Unity.Collections.LowLevel.Unsafe
{
    [AttributeUsage(AttributeTargets.Field)]
    public sealed class NativeDisableUnsafePtrRestrictionAttribute : Attribute
    {
    }

    public static class UnsafeUtility
    {
        public static int SizeOf<T>() => 0;
    }

    public struct AtomicSafetyHandle
    {
        private static readonly HashSet<int> Live = new HashSet<int>();
        private static int last;
        private int number;

        public static int LiveCount => Live.Count;

        public static AtomicSafetyHandle Create()
        {
            Live.Add(++last);
            return new AtomicSafetyHandle { number = last };
        }

        public static void CheckReadAndThrow(AtomicSafetyHandle handle)
        {
            if (handle.number != 0 && !Live.Contains(handle.number))
            {
                throw new ObjectDisposedException("NativeArray");
            }
        }

        public static void CheckDeallocateAndThrow(AtomicSafetyHandle handle) => CheckReadAndThrow(handle);

        public static void Release(AtomicSafetyHandle handle)
        {
            if (!Live.Remove(handle.number))
            {
                throw new InvalidOperationException("The handle was released already.");
            }
        }
    }

    public static unsafe class NativeArrayUnsafeUtility
    {
        public static NativeArray<T> ConvertExistingDataToNativeArray<T>(void* data, int length, Allocator allocator)
            where T : struct
        {
            if (allocator != Allocator.None)
            {
                throw new ArgumentException("Unity would free this memory.");
            }

            return new NativeArray<T> { Buffer = data, Length = length };
        }

        public static void SetAtomicSafetyHandle<T>(ref NativeArray<T> array, AtomicSafetyHandle handle)
            where T : struct => array.Safety = handle;
    }
}
