using System;
using System.Runtime.InteropServices;
using System.Threading;
using Blockyard.Diagnostics;
using Blockyard.Memory;
using NUnit.Framework;

namespace Blockyard.Tests
{
    /// <summary>Tags. dotnet/tests/recorded-tags runs these under the recorder, and looks at what was recorded.
    /// </summary>
    [TestFixture]
    public class AllocationTagTests
    {
        private static readonly string NewName = new string('n', 3);

        [Test]
        public void blocks_have_the_path_of_their_tags()
        {
            using (AllocationTag.Push("physics"))
            {
                Allocate(700_001);
                using (AllocationTag.Push("größer"))
                {
                    Allocate(700_002);
                }

                using (AllocationTag.Push(null))
                using (AllocationTag.Push(string.Empty))
                using (AllocationTag.Push("a/b"))
                {
                    Allocate(700_003);
                }
            }

            Allocate(700_004);
        }

        [Test]
        public void a_task_carries_its_tags_to_another_thread()
        {
            AllocationTagPath path;
            using (AllocationTag.Push("loading"))
            using (AllocationTag.Push("textures"))
            {
                path = AllocationTag.Current;
            }

            Thread worker = new Thread(() =>
            {
                using (AllocationTag.Push("worker"))
                {
                    using (AllocationTag.Enter(path))
                    {
                        Allocate(700_005);
                    }

                    using (AllocationTag.Enter(default))
                    {
                        Allocate(700_006);
                    }

                    Allocate(700_007);
                }
            });
            worker.Start();
            worker.Join();
        }

        [Test]
        public void names_in_any_number_are_taken_and_later_ones_are_left_out()
        {
            for (int i = 0; i < 5000; i++)
            {
                using (AllocationTag.Push("many"))
                using (AllocationTag.Push("name " + i))
                {
                    if (i == 4999)
                    {
                        Allocate(700_008);
                    }
                }
            }
        }

        [Test]
        public void a_tag_makes_no_garbage()
        {
            AllocationTagPath path = default;
            void PushAndPop()
            {
                using (AllocationTag.Push(NewName))
                using (AllocationTag.Enter(path))
                {
                    path = AllocationTag.Current;
                }
            }

            PushAndPop();
            AllocationAssert.Zero(PushAndPop);
        }

        private static void Allocate(int size) => Marshal.FreeHGlobal(Marshal.AllocHGlobal(size));
    }
}
