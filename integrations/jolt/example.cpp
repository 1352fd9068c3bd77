// Two hundred boxes fall on a floor for two seconds of the game, on two threads. All of it has a tag of the program's
// own, and loading the level another.
#include <Jolt/Jolt.h>

#include <Jolt/Core/Factory.h>
#include <Jolt/Core/JobSystemThreadPool.h>
#include <Jolt/Physics/Body/BodyCreationSettings.h>
#include <Jolt/Physics/Collision/Shape/BoxShape.h>
#include <Jolt/Physics/PhysicsSystem.h>
#include <Jolt/RegisterTypes.h>

#include <cstdio>
#include <vector>

#include "blockyard/frame.h"
#include "blockyard_jolt.hpp"

namespace {

constexpr JPH::ObjectLayer still{0};
constexpr JPH::ObjectLayer moving{1};

class Layers final : public JPH::BroadPhaseLayerInterface {
 public:
  JPH::uint GetNumBroadPhaseLayers() const override { return 2; }
  JPH::BroadPhaseLayer GetBroadPhaseLayer(JPH::ObjectLayer layer) const override {
    return JPH::BroadPhaseLayer(static_cast<JPH::BroadPhaseLayer::Type>(layer));
  }
#if defined(JPH_EXTERNAL_PROFILE) || defined(JPH_PROFILE_ENABLED)
  const char* GetBroadPhaseLayerName(JPH::BroadPhaseLayer) const override { return "layer"; }
#endif
};

class LayerFilter final : public JPH::ObjectVsBroadPhaseLayerFilter {
 public:
  bool ShouldCollide(JPH::ObjectLayer one, JPH::BroadPhaseLayer other) const override {
    return one == moving || other == JPH::BroadPhaseLayer(1);
  }
};

class PairFilter final : public JPH::ObjectLayerPairFilter {
 public:
  bool ShouldCollide(JPH::ObjectLayer one, JPH::ObjectLayer other) const override {
    return one == moving || other == moving;
  }
};

bool play() {
  blockyard::JoltTempAllocator temporary;
  JPH::JobSystemThreadPool jobs(JPH::cMaxPhysicsJobs, JPH::cMaxPhysicsBarriers, 1);
  const Layers layers;
  const LayerFilter layer_filter;
  const PairFilter pair_filter;
  JPH::PhysicsSystem physics;
  physics.Init(1024, 0, 4096, 4096, layers, layer_filter, pair_filter);
  JPH::BodyInterface& bodies = physics.GetBodyInterface();
  std::vector<JPH::BodyID> boxes;
  {
    const blockyard::tag level("level");
    const JPH::BodyCreationSettings floor(new JPH::BoxShape(JPH::Vec3(100, 1, 100)), JPH::RVec3(0, -1, 0),
                                          JPH::Quat::sIdentity(), JPH::EMotionType::Static, still);
    boxes.push_back(bodies.CreateAndAddBody(floor, JPH::EActivation::DontActivate));
    for (int i = 0; i < 200; ++i) {
      const JPH::RVec3 place(static_cast<float>(i % 10) * 1.5f, 1 + static_cast<float>(i / 10), 0);
      const JPH::BodyCreationSettings box(new JPH::BoxShape(JPH::Vec3(0.4f, 0.4f, 0.4f)), place, JPH::Quat::sIdentity(),
                                          JPH::EMotionType::Dynamic, moving);
      boxes.push_back(bodies.CreateAndAddBody(box, JPH::EActivation::Activate));
    }
  }
  for (int frame = 0; frame < 120; ++frame) {
    physics.Update(1.0f / 60.0f, 1, &temporary, &jobs);
    by_frame_mark();
  }
  const float lowest = static_cast<float>(bodies.GetPosition(boxes[1]).GetY());
  for (const JPH::BodyID& box : boxes) {
    bodies.RemoveBody(box);
    bodies.DestroyBody(box);
  }
  return lowest > 0.2f && lowest < 0.6f;
}

}  // namespace

int main() {
  blockyard::jolt_install();
  const blockyard::tag game("game");
  JPH::Factory::sInstance = new JPH::Factory();
  JPH::RegisterTypes();
  const bool lies = play();
  JPH::UnregisterTypes();
  delete JPH::Factory::sInstance;
  JPH::Factory::sInstance = nullptr;
  std::puts(lies ? "the first box lies on the floor" : "the first box is elsewhere");
}
