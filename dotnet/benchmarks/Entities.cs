using System;
using System.Runtime.InteropServices;

namespace Blockyard.Benchmarks
{
    /// <summary>The type of the article, behind its interface, of which the benchmarks use one property.</summary>
    internal interface IEntity
    {
        ulong Id { get; set; }
    }

    /// <summary>As a class: the fields of the struct.</summary>
    internal sealed class EntityClass : IEntity
    {
        private EntityStruct item;

        public ulong Id
        {
            get => item.Id;
            set => item.Id = value;
        }
    }

    /// <summary>As a class whose fields are packed: 22 bytes behind the object's header.</summary>
    internal sealed class EntityPackedClass : IEntity
    {
        private EntityPacked item;

        public ulong Id
        {
            get => item.Id;
            set => item.Id = value;
        }
    }

    /// <summary>As a struct.</summary>
    internal struct EntityStruct : IEntity
    {
        public ulong Id { get; set; }

        public double Score { get; set; }

        public byte Attribute1 { get; set; }

        public byte Attribute2 { get; set; }

        public float ConsolidatedScore { get; set; }
    }

    /// <summary>As a packed struct: 22 bytes.</summary>
    [StructLayout(LayoutKind.Sequential, Pack = 1)]
    internal struct EntityPacked : IEntity
    {
        public ulong Id { get; set; }

        public double Score { get; set; }

        public byte Attribute1 { get; set; }

        public byte Attribute2 { get; set; }

        public float ConsolidatedScore { get; set; }
    }

    /// <summary>Around a pointer to an item in unmanaged memory.</summary>
    internal readonly unsafe struct EntityWrapper : IEntity
    {
        private readonly EntityStruct* entity;

        public EntityWrapper(IntPtr pointer)
        {
            entity = (EntityStruct*)pointer;
        }

        public ulong Id
        {
            get => entity->Id;
            set => entity->Id = value;
        }
    }
}
