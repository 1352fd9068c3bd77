// A pyramid of boxes falls for two seconds.
#include <cstdio>

#include <box2d/box2d.h>

#include "blockyard/frame.h"
#include "blockyard/tag.hpp"

int main() {
  int32 contacts = 0;
  float height = 0;
  {
    b2World world(b2Vec2(0, -10));
    b2BodyDef still;
    b2EdgeShape ground;
    ground.SetTwoSided(b2Vec2(-40, 0), b2Vec2(40, 0));
    world.CreateBody(&still)->CreateFixture(&ground, 0);
    b2PolygonShape box;
    box.SetAsBox(0.5f, 0.5f);
    b2Body* top = nullptr;
    {
      const blockyard::tag level("level");
      for (int row = 0; row < 12; ++row) {
        for (int i = 0; i < 12 - row; ++i) {
          b2BodyDef moving;
          moving.type = b2_dynamicBody;
          moving.position = b2Vec2(float(i) * 1.1f + float(row) * 0.55f, 0.6f + float(row) * 1.2f);
          top = world.CreateBody(&moving);
          top->CreateFixture(&box, 1);
        }
      }
    }
    for (int frame = 0; frame < 120; ++frame) {
      world.Step(1 / 60.0f, 8, 3);
      by_frame_mark();
    }
    contacts = world.GetContactCount();
    height = top->GetPosition().y;
  }
  std::printf("%s, the top %s\n", contacts > 50 ? "many contacts" : "few contacts", height > 10 ? "is up" : "fell");
}
