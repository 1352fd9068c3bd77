// One run: a plan, an allocator, a pace, a touch; results in a folder.
#pragma once

#include <cstdint>
#include <string>

#include "replay/observe/cause_reader.hpp"
#include "replay/run/touch.hpp"

namespace blockyard::replay {

struct RunSettings {
#define COUNT(member, option, standard, most, unit, text) std::uint64_t member = standard;
#define AMOUNT(member, option, standard, most, unit, text) double member = standard;
#define SWITCH(member, option, text) bool member = false;
#include "replay/run/run_options.def"
#undef COUNT
#undef AMOUNT
#undef SWITCH
  std::string plan;
  std::string adapter;
  std::string foreign;  ///< the shared object that the adapter `foreign` drives, for run.json; else empty
  std::string output;   ///< folder for run.json, samples.npy or bursts.npy, and memory.npy
  double pace = 1;      ///< 1 is the journal's own, 10 ten times as fast, 0 as fast as possible
  Touch touch = Touch::page;
  CauseSource cause_source = CauseSource::perf;  ///< the best that may be used for causes
  bool untimed = false;                          ///< no clock around each call; one around each burst of calls
  bool traced = false;                           ///< records system calls, and times nothing
  bool verify = false;
  bool populate = false;
  std::string options;  ///< "key=value,key=value" of the variant
  std::string journal;  ///< names for run.json
  std::string allocator;
  std::string variant = "defaults";
  unsigned repeat = 1;
  double patience_s = 60;
  bool progress = false;
};

/// Replays. Returns when run.json is written. When the allocator fails, the process writes a failed run.json and ends
/// with status 1; when it crashes, likewise, but by the crash's signal. Throws journal::Error for what is not the
/// allocator's fault (a bad plan, no disk space): then there is no run.json. Call it once per process.
void run(const RunSettings& settings);

/// "1x", "10x", "0.5x", "max".
std::string pace_text(double pace);
/// "none", "first", "page", "all".
const char* touch_text(Touch touch);

}  // namespace blockyard::replay
