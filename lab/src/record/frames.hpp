// Finding frames by themselves: the functions by which programs present a picture, however they came by their address.
#pragma once

namespace blockyard::record {

/// What a lookup of `name` that found `found` should give the program: a function that marks a frame and then calls
/// `found`, where `name` is one that presents or one that looks up such functions; else `found` itself.
void* replace_found(const char* name, void* found);

/// Whether replace_found() could replace `name`.
bool is_replaceable(const char* name);

/// The real function behind one that this library exports under `name`, wherever it is loaded; nullptr when nowhere.
void* find_real(const char* name);

}  // namespace blockyard::record
