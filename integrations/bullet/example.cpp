// A pile of boxes falls for two seconds, and is taken away again.
#include <cstdio>

#include <btBulletDynamicsCommon.h>

#include "blockyard/frame.h"
#include "blockyard_bullet.hpp"

int main() {
  blockyard::bullet_install();
  float height = 0;
  {
    btDefaultCollisionConfiguration configuration;
    btCollisionDispatcher dispatcher(&configuration);
    btDbvtBroadphase broadphase;
    btSequentialImpulseConstraintSolver solver;
    btDiscreteDynamicsWorld world(&dispatcher, &broadphase, &solver, &configuration);
    btStaticPlaneShape ground(btVector3(0, 1, 0), 0);
    btBoxShape box(btVector3(0.5f, 0.5f, 0.5f));
    btRigidBody floor(btRigidBody::btRigidBodyConstructionInfo(0, nullptr, &ground));
    world.addRigidBody(&floor);
    btAlignedObjectArray<btRigidBody*> pile;
    {
      const blockyard::tag level("level");
      for (int i = 0; i < 60; ++i) {
        btRigidBody::btRigidBodyConstructionInfo of_a_box(1, nullptr, &box, btVector3(0.2f, 0.2f, 0.2f));
        of_a_box.m_startWorldTransform.setOrigin(btVector3(0.1f * float(i % 7), 1 + float(i) * 1.1f, 0));
        pile.push_back(new btRigidBody(of_a_box));
        world.addRigidBody(pile[i]);
      }
    }
    for (int frame = 0; frame < 120; ++frame) {
      world.stepSimulation(1 / 60.0f, 1, 1 / 60.0f);
      by_frame_mark();
    }
    height = float(pile[0]->getWorldTransform().getOrigin().y());
    for (int i = 0; i < pile.size(); ++i) {
      world.removeRigidBody(pile[i]);
      delete pile[i];
    }
    world.removeRigidBody(&floor);
  }
  std::printf("the lowest box lies %s\n", height > 0.3f && height < 1 ? "on the ground" : "elsewhere");
}
