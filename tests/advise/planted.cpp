// A scene in which every allocation site has a known lifetime. The namespace of a function names the advice that is
// right for the blocks that it allocates. In `almost_temp` and its like, a few blocks break that advice. Functions in
// `program` free, or call the others.
//
// The scene has 450 frames in three levels. Random numbers come from a fixed seed, and the two threads wait for each
// other, so each run makes the same allocations.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <semaphore>
#include <thread>
#include <vector>

#include "blockyard/frame.h"

#if defined(__clang__)
#define SITE [[gnu::noinline]]
#else
#define SITE [[gnu::noinline, gnu::noclone]]
#endif

namespace {

constexpr unsigned frames_per_level = 150;
constexpr unsigned frames = 3 * frames_per_level;

/// At least `from`, below `to`.
std::size_t between(std::size_t from, std::size_t to) {
  thread_local std::uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return from + (state >> 8) % (to - from);
}

/// The result of malloc or realloc, every byte written.
void* written(void* block, std::size_t size) {
  if (block == nullptr) {
    std::abort();
  }
  return std::memset(block, 1, size);
}

void* filled(std::size_t size) { return written(std::malloc(size), size); }

/// A block that grows by realloc.
struct Growing {
  void* block = nullptr;
  std::size_t capacity = 32;

  void grow(std::size_t size) {
    while (capacity < size) {
      capacity *= 2;
      block = written(std::realloc(block, capacity), capacity);
    }
  }
};

/// Blocks that are freed together or one by one. It allocates nothing itself.
template <std::size_t Capacity>
struct Blocks {
  std::array<void*, Capacity> block{};
  std::size_t count = 0;

  void add(void* one) {
    if (count == Capacity) {
      std::abort();
    }
    block[count++] = one;
  }
  void* take_any() {
    void*& any = block[between(0, count)];
    void* const taken = any;
    any = block[--count];
    return taken;
  }
};

template <std::size_t Capacity>
void free_all(Blocks<Capacity>& blocks) {
  while (blocks.count != 0) {
    std::free(blocks.take_any());
  }
}

unsigned frame = 0;
Blocks<256> of_frame;                  ///< freed when the frame ends
Blocks<256> late;                      ///< freed when the next frame ends
Blocks<4096> of_level;                 ///< freed when the level ends
Blocks<64> of_program;                 ///< freed when the program ends
Blocks<64> for_mixer;                  ///< freed by the mixer's thread in this frame
std::array<Blocks<64>, 8> for_worker;  ///< freed by the mixer's thread in the frame of this number, modulo 8
Blocks<64> from_worker;                ///< allocated by the mixer's thread, freed in the next frame
Blocks<64> of_mix;                     ///< of the mixer's thread, freed when its frame ends

}  // namespace

namespace temp {

SITE void visible_nodes() {
  for (int i = 0; i < 40; ++i) {
    of_frame.add(filled(between(16, 400)));
  }
}

/// Its caller decides: what draw_label() asks for dies with the frame, what program::name_object() asks for does not.
SITE void* copy_text(std::size_t length) {
  void* const text = filled(length);
  return text;
}

SITE void draw_label() { of_frame.add(copy_text(between(20, 60))); }

}  // namespace temp

namespace almost_temp {

/// One in 10,000 waits for the next frame.
SITE void queue_event() {
  static unsigned events = 0;
  void* const event = filled(56);
  if (++events % 10'000 == 0) {
    late.add(event);
  } else {
    of_frame.add(event);
  }
}

/// Dies in its frame, but on the mixer's thread.
SITE void voice_command() { for_mixer.add(filled(80)); }

/// Grows in a frame and dies with it; one stays until the end.
SITE void build_mesh() {
  Growing mesh;
  mesh.grow(between(1000, 5000));
  if (frame == 100) {
    of_program.add(mesh.block);
  } else {
    of_frame.add(mesh.block);
  }
}

}  // namespace almost_temp

namespace temp_scope {

/// Dies long before its frame does.
SITE void find_path() {
  Blocks<64> open;
  for (int i = 0; i < 30; ++i) {
    open.add(filled(between(24, 64)));
  }
  free_all(open);
}

/// The C library's qsort() allocates and frees a copy of the array: its caller is what the program can change.
SITE void sort_entities() {
  std::array<std::uint64_t, 500> depths;
  for (std::uint64_t& depth : depths) {
    depth = between(0, 1000);
  }
  std::qsort(depths.data(), depths.size(), sizeof depths[0], [](const void* one, const void* other) {
    return static_cast<int>(*static_cast<const unsigned char*>(one)) - *static_cast<const unsigned char*>(other);
  });
}

/// On the mixer's thread, within the call.
SITE void filter_voices() {
  Blocks<64> taps;
  for (int i = 0; i < 12; ++i) {
    taps.add(filled(between(40, 200)));
  }
  free_all(taps);
}

/// On the mixer's thread, within its own frame: the loop of program::mix() frees them.
SITE void resample() { of_mix.add(filled(between(500, 3000))); }

}  // namespace temp_scope

namespace almost_temp_scope {

/// One call in 500 keeps a block until the level ends.
SITE void run_script() {
  static unsigned calls = 0;
  Blocks<16> values;
  for (int i = 0; i < 10; ++i) {
    values.add(filled(between(16, 128)));
  }
  if (++calls % 500 == 0) {
    of_level.add(values.take_any());
  }
  free_all(values);
}

}  // namespace almost_temp_scope

namespace temp_job {

/// The mixer's thread frees them two frames later.
SITE void decode_samples() {
  for (int i = 0; i < 4; ++i) {
    for_worker[(frame + 2) % 8].add(filled(between(200, 1000)));
  }
}

/// The mixer's thread allocates, the main thread frees in the next frame.
SITE void meter_levels() {
  for (int i = 0; i < 8; ++i) {
    from_worker.add(filled(between(30, 90)));
  }
}

}  // namespace temp_job

namespace almost_temp_job {

/// Two frames, but one in 1,000 lives for six.
SITE void stream_chunk() {
  static unsigned chunks = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned lifetime = ++chunks % 1000 == 0 ? 6 : 2;
    for_worker[(frame + lifetime) % 8].add(filled(between(100, 700)));
  }
}

}  // namespace almost_temp_job

namespace pool {

Blocks<512> components;

/// All components come from here, whoever asks.
SITE void* new_component() {
  void* const component = filled(48);
  return component;
}

SITE void spawn_particle() { components.add(new_component()); }

SITE void spawn_projectile() { components.add(new_component()); }

Blocks<512> packets;

/// Comes and goes in one size, but for one in 100, whose size is known when it is asked for.
SITE void make_packet() {
  static unsigned made = 0;
  packets.add(filled(++made % 100 == 0 ? 1400 : 96));
}

}  // namespace pool

namespace rewindable {

SITE void load_level() {
  for (int i = 0; i < 600; ++i) {
    of_level.add(filled(between(32, 2000)));
  }
}

}  // namespace rewindable

namespace almost_rewindable {

/// Dies with the level, except for one texture of each.
SITE void load_textures() {
  for (int i = 0; i < 200; ++i) {
    void* const texture = filled(between(500, 4000));
    if (i == 77) {
      of_program.add(texture);
    } else {
      of_level.add(texture);
    }
  }
}

}  // namespace almost_rewindable

namespace reserve {

/// 149 recordings grow to 4,096 bytes at most, one to 131,072.
SITE void record_input() {
  static Growing recording;
  static std::size_t size = 0;
  if (frame % 3 == 0) {
    std::free(recording.block);
    recording = {};
    size = 0;
  }
  size += frame == 202 ? 100'000 : between(300, 1000);
  recording.grow(size);
}

/// The same with a vector: 149 take 2,048 bytes at most, one 65,536.
SITE void collect_visible() {
  static std::vector<std::uint64_t> visible;
  if (frame % 3 == 0) {
    std::vector<std::uint64_t>().swap(visible);
  }
  for (std::size_t left = frame == 202 ? 5'000 : between(40, 80); left != 0; --left) {
    visible.push_back(left);
  }
}

}  // namespace reserve

namespace keep {

/// One buffer of one size each frame.
SITE void draw_interface() { of_frame.add(filled(200'000)); }

}  // namespace keep

namespace almost_keep {

/// As draw_interface(), but a screenshot stays until the end.
SITE void draw_map() {
  void* const buffer = filled(150'000);
  if (frame == 300) {
    of_program.add(buffer);
  } else {
    of_frame.add(buffer);
  }
}

}  // namespace almost_keep

namespace leave {

SITE void load_settings() {
  for (int i = 0; i < 40; ++i) {
    of_program.add(filled(between(20, 200)));
  }
}

/// Any size, for any time.
SITE void cache_asset() {
  static Blocks<64> assets;
  assets.add(filled(between(16, 20'000)));
  if (assets.count == 64) {
    std::free(assets.take_any());
  }
}

}  // namespace leave

namespace program {

std::binary_semaphore mixer_may_run(0);
std::binary_semaphore mixer_is_done(0);

SITE void mix() {
  for (unsigned i = 0; i < frames; ++i) {
    mixer_may_run.acquire();
    free_all(for_mixer);
    free_all(for_worker[frame % 8]);
    temp_job::meter_levels();
    temp_scope::filter_voices();
    for (int voice = 0; voice < 4; ++voice) {
      temp_scope::resample();
    }
    free_all(of_mix);
    by_frame_mark();
    mixer_is_done.release();
  }
}

/// What is left when it is full goes one by one, in any order.
template <std::size_t Capacity>
void thin_out(Blocks<Capacity>& blocks) {
  while (blocks.count > Capacity / 2) {
    std::free(blocks.take_any());
  }
}

SITE void name_object() { of_level.add(temp::copy_text(between(20, 60))); }

SITE void begin_level() {
  rewindable::load_level();
  almost_rewindable::load_textures();
}

SITE void end_level() { free_all(of_level); }

SITE void update() {
  free_all(from_worker);
  for (int i = 0; i < 50; ++i) {
    almost_temp::queue_event();
  }
  for (int i = 0; i < 10; ++i) {
    temp_scope::find_path();
    temp_scope::sort_entities();
    almost_temp_scope::run_script();
    temp::draw_label();
    almost_temp::voice_command();
    pool::spawn_particle();
    pool::make_packet();
  }
  pool::spawn_projectile();
  thin_out(pool::components);
  thin_out(pool::packets);
  name_object();
  temp_job::decode_samples();
  almost_temp_job::stream_chunk();
  reserve::record_input();
  reserve::collect_visible();
  leave::cache_asset();
}

SITE void draw() {
  temp::visible_nodes();
  almost_temp::build_mesh();
  keep::draw_interface();
  almost_keep::draw_map();
}

SITE void end_frame() {
  static Blocks<256> waiting;
  free_all(of_frame);
  free_all(waiting);
  waiting = late;
  late = {};
}

}  // namespace program

int main() {
  leave::load_settings();
  std::thread mixer(program::mix);
  by_frame_mark();
  for (frame = 0; frame < frames; ++frame) {
    if (frame % frames_per_level == 0) {
      program::begin_level();
    }
    program::update();
    program::mixer_may_run.release();
    program::draw();
    program::mixer_is_done.acquire();
    program::end_frame();
    if (frame % frames_per_level == frames_per_level - 1) {
      program::end_level();
    }
    by_frame_mark();
  }
  mixer.join();
  free_all(from_worker);
  free_all(of_program);
  free_all(pool::components);
  free_all(pool::packets);
}
