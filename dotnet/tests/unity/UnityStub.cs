// Stand-ins for the parts of Unity that the samples use and for names that its users import. With them the samples and
// a file that imports everything compile in the tests, without Unity.
using System;

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

namespace Unity.Collections
{
    public enum Allocator
    {
        Temp,
        TempJob,
        Persistent,
    }

    public struct NativeArray<T>
        where T : struct
    {
        public NativeArray(int length, Allocator allocator)
        {
            Length = allocator == Allocator.Temp ? length : length;
        }

        public int Length { get; }
    }
}

namespace Unity.Collections.LowLevel.Unsafe
{
    public static class UnsafeUtility
    {
        public static int SizeOf<T>() => 0;
    }
}
