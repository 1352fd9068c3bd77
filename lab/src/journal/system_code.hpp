// What of a recorded program's code is not its own, by name and path.
#pragma once

#include <string>
#include <string_view>

namespace blockyard::journal {

/// What the names of wrappers in an anonymous journal begin with. No function of a program can.
inline constexpr std::string_view anonymous_wrapper = "wrapper-";

/// Whether a function only passes an allocation on: malloc and its kin, operator new, Blockyard's pools, lifetimes and
/// recorder, and what belongs to the standard libraries of C++ and Rust. `function` is demangled.
bool is_wrapper(std::string_view function);

/// Whether it is the C library's function that calls main().
bool starts_program(std::string_view function);

/// Whether a module comes with the system or with the recorder, which stands between the program and its buffer swap.
/// The program and what lies beside it are its own, wherever they are.
bool is_of_system(const std::string& path, const std::string& program);

}  // namespace blockyard::journal
