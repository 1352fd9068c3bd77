/// Frames, zones and memory of a program that is instrumented for Tracy, in a recording. Include it where Tracy.hpp was
/// included; nothing else changes. With TRACY_ENABLE, Tracy gets everything as before.
///
/// FrameMark marks frames. In a program without it, the first name of FrameMarkNamed or FrameMarkEnd does, from its
/// second mark on. Zones are tags. Under `blockyard record`, TracyAlloc and TracyFree write a journal of their own,
/// tracy.byj or what BLOCKYARD_TRACY_JOURNAL names; a pool's name is the last level of the tag, and blocks of a 256th
/// pool are left out, as a line on standard error says. A free that matches nothing is counted there; in Tracy it ends
/// the session. Without a recorder each of this is a load and a branch more. Not recorded: TracyMemoryDiscard, fibers,
/// and the macros of TracyC.h.
///
/// Its length: each of Tracy's 39 macros takes two lines, and all are here, as without TRACY_ENABLE Tracy has none.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#if __has_include("tracy/Tracy.hpp")
#include "tracy/Tracy.hpp"
#else
#include "Tracy.hpp"
#endif

#include "blockyard/journal.h"
#include "blockyard/tag.h"

extern "C" {  // only a recorder has them
BY_API BY_WEAK void by_frame_mark(void);
BY_API BY_WEAK int by_journal_open(const char*);
BY_API BY_WEAK void by_journal_alloc(const void*, size_t, size_t);
BY_API BY_WEAK void by_journal_free(const void*);
}

namespace blockyard::traced {

#ifdef TRACY_CALLSTACK
inline constexpr int depth_unless_said = TRACY_CALLSTACK;
#else
inline constexpr int depth_unless_said = 0;
#endif

inline void mark(const char* set) {
  static std::atomic<const char*> chosen{nullptr};  // "": FrameMark
  const char* before = nullptr;
  if (set[0] == '\0') {
    chosen = set;
  } else if (chosen.compare_exchange_strong(before, set) || std::strcmp(before, set) != 0) {
    return;  // FrameMark may follow
  }
  if (by_frame_mark) by_frame_mark();
}

inline bool is_open() {
  static const bool opened = [] {
    const char* const path = std::getenv("BLOCKYARD_TRACY_JOURNAL");
    return by_journal_open && by_journal_open(path ? path : "tracy.byj") == 0;
  }();
  return opened;
}

// The same address in two pools is two blocks: the pool's number stands above the bits of an address, where a journal
// has room for 8. Null where there are more pools.
inline const void* place(const void* block, const char* pool) {
  static std::atomic<const char*> pools[255];
  static std::atomic<bool> said{false};
  if (!pool) return block;
  std::uintptr_t number = 0;
  for (std::atomic<const char*>& one : pools) {
    const char* name = one;
    if (!name && one.compare_exchange_strong(name, pool)) name = pool;
    ++number;
    if (name != pool && std::strcmp(name, pool) != 0) continue;
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(block) ^ number << 48);
  }
  if (!said.exchange(true)) std::fputs("blockyard: of more than 255 pools, the first 255 are recorded\n", stderr);
  return nullptr;
}

// Below, each macro as Tracy has it, and beside it what is recorded.
inline void frame() {
  FrameMark;
  mark("");
}
inline void frame([[maybe_unused]] const char* set) {
  FrameMarkNamed(set);
  mark(set);
}
inline void frame_end([[maybe_unused]] const char* set) {
  FrameMarkEnd(set);
  mark(set);
}
inline void allocated(const void* block, std::size_t size, const char* pool, [[maybe_unused]] int depth) {
  if (pool) {
    TracyAllocNS(block, size, depth, pool);
  } else {
    TracyAllocS(block, size, depth);
  }
  if (!block || !is_open()) return;
  by_tag_push(pool);
  by_journal_alloc(place(block, pool), size, 0);
  by_tag_pop();
}
inline void freed(const void* block, const char* pool, [[maybe_unused]] int depth) {
  if (block && is_open()) {
    by_tag_push(pool);
    by_journal_free(place(block, pool));
    by_tag_pop();
  }
  if (pool) {
    TracyFreeNS(block, depth, pool);
  } else {
    TracyFreeS(block, depth);
  }
}

/// A tag for as long as the zone. The name of a transient zone need not stay, so it is copied.
class Zone {
 public:
  Zone(const char* name, const char* function, bool is_active, bool is_transient)
      : is_active_(is_active && by_recorder_tag_push) {
    if (!is_active_) return;
    if (!name) name = function;
    if (is_transient) {
      copy_[sizeof copy_ - 1] = '\0';
      name = std::strncpy(copy_, name, sizeof copy_ - 1);
    }
    by_tag_push(name);
  }
  ~Zone() {
    if (is_active_) by_tag_pop();
  }
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

 private:
  char copy_[233];  // a recorder keeps 232 bytes
  const bool is_active_;
};

inline std::size_t length(const char* name) { return name ? std::strlen(name) : 0; }

}  // namespace blockyard::traced

#ifdef TRACY_ENABLE
#define BY_TRACY(...) __VA_ARGS__
#else
#define BY_TRACY(...)
#endif
#define BY_JOIN_(left, right) left##right
#define BY_JOIN(left, right) BY_JOIN_(left, right)
#define BY_ZONE(zone, name, color, depth, active)                                                             \
  BY_TRACY(static constexpr ::tracy::SourceLocationData BY_JOIN(by_place, __LINE__){name, __func__, __FILE__, \
                                                                                    __LINE__, color};         \
           ::tracy::ScopedZone zone(&BY_JOIN(by_place, __LINE__), depth, active);)                            \
  const ::blockyard::traced::Zone BY_JOIN(by_zone, __LINE__)(name, __func__, active, false)
#define BY_TRANSIENT(zone, name, depth, active)                                                                     \
  BY_TRACY(::tracy::ScopedZone zone(__LINE__, __FILE__, sizeof __FILE__ - 1, __func__, std::strlen(__func__), name, \
                                    ::blockyard::traced::length(name), depth, active);)                             \
  const ::blockyard::traced::Zone BY_JOIN(by_zone, __LINE__)(name, __func__, active, true)
#define BY_DEPTH ::blockyard::traced::depth_unless_said
#define BY_SCOPED ___tracy_scoped_zone  // what ZoneText and its like refer to

#undef ZoneNamed
#define ZoneNamed(zone, active) BY_ZONE(zone, nullptr, 0, BY_DEPTH, active)
#undef ZoneNamedN
#define ZoneNamedN(zone, name, active) BY_ZONE(zone, name, 0, BY_DEPTH, active)
#undef ZoneNamedC
#define ZoneNamedC(zone, color, active) BY_ZONE(zone, nullptr, color, BY_DEPTH, active)
#undef ZoneNamedNC
#define ZoneNamedNC(zone, name, color, active) BY_ZONE(zone, name, color, BY_DEPTH, active)
#undef ZoneTransient
#define ZoneTransient(zone, active) BY_TRANSIENT(zone, nullptr, BY_DEPTH, active)
#undef ZoneTransientN
#define ZoneTransientN(zone, name, active) BY_TRANSIENT(zone, name, BY_DEPTH, active)
#undef ZoneScoped
#define ZoneScoped BY_ZONE(BY_SCOPED, nullptr, 0, BY_DEPTH, true)
#undef ZoneScopedN
#define ZoneScopedN(name) BY_ZONE(BY_SCOPED, name, 0, BY_DEPTH, true)
#undef ZoneScopedC
#define ZoneScopedC(color) BY_ZONE(BY_SCOPED, nullptr, color, BY_DEPTH, true)
#undef ZoneScopedNC
#define ZoneScopedNC(name, color) BY_ZONE(BY_SCOPED, name, color, BY_DEPTH, true)
#undef ZoneNamedS
#define ZoneNamedS(zone, depth, active) BY_ZONE(zone, nullptr, 0, depth, active)
#undef ZoneNamedNS
#define ZoneNamedNS(zone, name, depth, active) BY_ZONE(zone, name, 0, depth, active)
#undef ZoneNamedCS
#define ZoneNamedCS(zone, color, depth, active) BY_ZONE(zone, nullptr, color, depth, active)
#undef ZoneNamedNCS
#define ZoneNamedNCS(zone, name, color, depth, active) BY_ZONE(zone, name, color, depth, active)
#undef ZoneTransientS
#define ZoneTransientS(zone, depth, active) BY_TRANSIENT(zone, nullptr, depth, active)
#undef ZoneTransientNS
#define ZoneTransientNS(zone, name, depth, active) BY_TRANSIENT(zone, name, depth, active)
#undef ZoneScopedS
#define ZoneScopedS(depth) BY_ZONE(BY_SCOPED, nullptr, 0, depth, true)
#undef ZoneScopedNS
#define ZoneScopedNS(name, depth) BY_ZONE(BY_SCOPED, name, 0, depth, true)
#undef ZoneScopedCS
#define ZoneScopedCS(color, depth) BY_ZONE(BY_SCOPED, nullptr, color, depth, true)
#undef ZoneScopedNCS
#define ZoneScopedNCS(name, color, depth) BY_ZONE(BY_SCOPED, name, color, depth, true)
#undef FrameMark
#define FrameMark ::blockyard::traced::frame()
#undef FrameMarkNamed
#define FrameMarkNamed(name) ::blockyard::traced::frame(name)
#undef FrameMarkEnd
#define FrameMarkEnd(name) ::blockyard::traced::frame_end(name)
#undef TracyAlloc
#define TracyAlloc(block, size) ::blockyard::traced::allocated(block, size, nullptr, BY_DEPTH)
#undef TracyAllocN
#define TracyAllocN(block, size, pool) ::blockyard::traced::allocated(block, size, pool, BY_DEPTH)
#undef TracyFree
#define TracyFree(block) ::blockyard::traced::freed(block, nullptr, BY_DEPTH)
#undef TracyFreeN
#define TracyFreeN(block, pool) ::blockyard::traced::freed(block, pool, BY_DEPTH)
#undef TracyAllocS
#define TracyAllocS(block, size, depth) ::blockyard::traced::allocated(block, size, nullptr, depth)
#undef TracyAllocNS
#define TracyAllocNS(block, size, depth, pool) ::blockyard::traced::allocated(block, size, pool, depth)
#undef TracyFreeS
#define TracyFreeS(block, depth) ::blockyard::traced::freed(block, nullptr, depth)
#undef TracyFreeNS
#define TracyFreeNS(block, depth, pool) ::blockyard::traced::freed(block, pool, depth)
#undef TracySecureAlloc
#define TracySecureAlloc(block, size) ::blockyard::traced::allocated(block, size, nullptr, BY_DEPTH)
#undef TracySecureAllocN
#define TracySecureAllocN(block, size, pool) ::blockyard::traced::allocated(block, size, pool, BY_DEPTH)
#undef TracySecureFree
#define TracySecureFree(block) ::blockyard::traced::freed(block, nullptr, BY_DEPTH)
#undef TracySecureFreeN
#define TracySecureFreeN(block, pool) ::blockyard::traced::freed(block, pool, BY_DEPTH)
#undef TracySecureAllocS
#define TracySecureAllocS(block, size, depth) ::blockyard::traced::allocated(block, size, nullptr, depth)
#undef TracySecureAllocNS
#define TracySecureAllocNS(block, size, depth, pool) ::blockyard::traced::allocated(block, size, pool, depth)
#undef TracySecureFreeS
#define TracySecureFreeS(block, depth) ::blockyard::traced::freed(block, nullptr, depth)
#undef TracySecureFreeNS
#define TracySecureFreeNS(block, depth, pool) ::blockyard::traced::freed(block, pool, depth)
