//! A game of Bevy without a window: ten frames, whose end a system tells, and two systems with tags of their own.

use std::time::Duration;

use bevy_app::{App, AppExit, Last, Startup, Update};
use bevy_ecs::prelude::{Commands, Component, Entity, Query, ResMut, Resource, With};

#[global_allocator]
static GLOBAL: blockyard::Heap = blockyard::Heap;

const FRAMES: usize = 10;

#[derive(Component)]
struct Trail(Vec<f32>);

#[derive(Resource, Default)]
struct Frame(usize);

fn load(mut commands: Commands) {
    blockyard::phase(c"loading");
    let _tag = blockyard::tag(c"loading");
    for _ in 0..1000 {
        commands.spawn(Trail(vec![0.0; 30]));
    }
    blockyard::phase(c"playing");
}

fn fly(mut trails: Query<&mut Trail>) {
    let _tag = blockyard::tag(c"trails");
    for mut trail in &mut trails {
        trail.0.extend([1.0; 10]);
    }
}

fn spawn_and_despawn(mut commands: Commands, trails: Query<Entity, With<Trail>>) {
    let _tag = blockyard::tag(c"spawning");
    for entity in trails.iter().take(20) {
        commands.entity(entity).despawn();
    }
    for _ in 0..20 {
        commands.spawn(Trail(vec![0.0; 50]));
    }
}

fn end_frame(mut frame: ResMut<Frame>) {
    frame.0 += 1;
    blockyard::frame_end(Duration::from_micros(200));
}

fn main() {
    let mut app = App::new();
    app.init_resource::<Frame>();
    app.add_systems(Startup, load).add_systems(Update, (fly, spawn_and_despawn)).add_systems(Last, end_frame);
    app.set_runner(|mut app| {
        while app.world().resource::<Frame>().0 < FRAMES {
            app.update();
        }
        AppExit::Success
    });
    app.run();
    println!("{} blocks taken back from other threads", blockyard::statistics().remote_frees_adopted);
}
