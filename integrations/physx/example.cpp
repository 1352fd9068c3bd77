// Two threads fill what PhysX is made of for sixty frames: arrays, a map, a pool and temp memory.
#include <cstdint>
#include <cstdio>

#include <foundation/PxArray.h>
#include <foundation/PxErrorCallback.h>
#include <foundation/PxFoundation.h>
#include <foundation/PxHashMap.h>
#include <foundation/PxPhysicsVersion.h>
#include <foundation/PxPool.h>
#include <foundation/PxTempAllocator.h>
#include <foundation/PxThread.h>
#include <foundation/PxUserAllocated.h>

#include "blockyard_physx.hpp"

namespace {

class Errors final : public physx::PxErrorCallback {
 public:
  void reportError(physx::PxErrorCode::Enum, const char* message, const char*, int) override { std::puts(message); }
};

struct Body {
  double place[12] = {};
};

struct Island : physx::PxUserAllocated {
  physx::PxArray<Body*> bodies;
};

std::uint32_t simulate() {
  physx::PxHashMap<std::uint32_t, Island*> islands;
  physx::PxPool<Body> bodies;
  std::uint32_t held = 0;
  for (std::uint32_t step = 0; step < 60; ++step) {
    Island* const island = PX_NEW(Island)();
    for (int i = 0; i < 50; ++i) island->bodies.pushBack(bodies.construct());
    islands[step] = island;
    physx::PxTempAllocator temp;
    void* const contacts = temp.allocate(4000, __FILE__, __LINE__);
    if (contacts != nullptr) held += island->bodies.size();
    temp.deallocate(contacts);
  }
  for (auto entry = islands.getIterator(); !entry.done(); ++entry) {
    for (Body* const body : entry->second->bodies) bodies.destroy(body);
    PX_DELETE(entry->second);
  }
  return held;
}

class Worker final : public physx::PxThread {
 public:
  std::uint32_t held = 0;

 private:
  void execute() override {
    {
      const blockyard::tag worker("worker");
      held = simulate();
    }
    quit();
  }
};

}  // namespace

int main() {
  static blockyard::PhysXAllocator allocator;
  Errors errors;
  physx::PxFoundation* const foundation = PxCreateFoundation(PX_PHYSICS_VERSION, allocator, errors);
  if (foundation == nullptr) return 1;
  std::uint32_t held = 0;
  {
    Worker worker;
    worker.start();
    const blockyard::tag level("level");
    held = simulate();
    worker.waitForQuit();
    held += worker.held;
  }
  foundation->release();
  std::printf("%u bodies held\n", held);
}
