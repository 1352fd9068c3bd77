using System;
using Blockyard.Memory;
using UnityEngine;

namespace Blockyard.Samples
{
    /// <summary>Ends Blockyard's frames with Unity's. One of it in the scene, last in the execution order.</summary>
    [DefaultExecutionOrder(32000)]
    public sealed class FrameEnd : MonoBehaviour
    {
        private void Awake() => LeakDetection.Reporter = Debug.LogWarning;

        private void LateUpdate()
        {
            // A frame's scratch: no garbage, nothing to free.
            UnmanagedList<Vector3> visible = new UnmanagedList<Vector3>(256, Lifetime.Temp);
            visible.Add(transform.position);
            FrameMemory.EndFrame();
        }
    }
}
