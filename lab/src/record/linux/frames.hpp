// Finds frames automatically: through the functions with which programs present a picture, in whatever way they got
// their address.
//
// Two libraries have these hooks: the recorder, and libblockyard-frames, which only times frames. What differs between
// them is declared last.
#pragma once

#include <cstdint>

namespace blockyard::record {

/// What a lookup of `name` that found `found` gives the program. If `name` presents a picture: a function that marks a
/// frame and then calls `found`. If it looks up such functions: a function that replaces their results. Otherwise
/// `found`.
void* replace_found(const char* name, void* found);

/// Whether replace_found() could replace `name`.
bool is_replaceable(const char* name);

/// The real function that this library's export `name` stands for, wherever it is loaded; nullptr when nowhere.
void* find_real(const char* name);

// What each of the two libraries has of its own:

/// A frame of the calling thread ends. Marks that the program sets itself turn automatic ones off.
void mark_frame(bool automatic);

/// The value of --frame-symbol, or nullptr.
const char* frame_symbol();

/// How many calls that present a frame the calling thread is inside of.
std::uint32_t& present_depth();

/// The program looks up a function: objects may have been loaded since the last time.
void notice_lookup();

}  // namespace blockyard::record
