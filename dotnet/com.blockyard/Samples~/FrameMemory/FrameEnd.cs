using System;
using Blockyard.Memory;
using UnityEngine;

namespace Blockyard.Samples
{
    /// <summary>Ends Blockyard's frame at the end of Unity's. Put one into the scene, last in the execution
    /// order.</summary>
    [DefaultExecutionOrder(32000)]
    public sealed class FrameEnd : MonoBehaviour
    {
        private void Awake() => LeakDetection.Reporter = Debug.LogWarning;

        private void LateUpdate()
        {
            // Scratch memory for one frame: no garbage, and nothing to free.
            UnmanagedList<Vector3> visible = new UnmanagedList<Vector3>(256, Lifetime.Temp);
            visible.Add(transform.position);
            FrameMemory.EndFrame();
        }
    }
}
