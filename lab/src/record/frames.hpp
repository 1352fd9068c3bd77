// Finds frames automatically: through the functions with which programs present a picture, in whatever way they got
// their address.
#pragma once

namespace blockyard::record {

/// What a lookup of `name` that found `found` gives the program. If `name` presents a picture: a function that marks a
/// frame and then calls `found`. If it looks up such functions: a function that replaces their results. Otherwise
/// `found`.
void* replace_found(const char* name, void* found);

/// Whether replace_found() could replace `name`.
bool is_replaceable(const char* name);

/// The real function that this library's export `name` stands for, wherever it is loaded; nullptr when nowhere.
void* find_real(const char* name);

}  // namespace blockyard::record
