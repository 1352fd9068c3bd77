// What the lab's command-line programs have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "journal/event.hpp"
#include "journal/progress.hpp"

namespace blockyard::journal::command {

inline constexpr int bad_input = 1;
inline constexpr int wrong_usage = 2;

inline constexpr const char* no_room_for_blocks = "not enough memory for the blocks that are alive in this journal";

/// Reads the command line, then runs `body`, or tells what went wrong in one sentence. Returns the exit code.
template <typename Body>
int run(CLI::App& app, int argc, char** argv, Body body, const char* out_of_memory = no_room_for_blocks) {
  try {
    app.parse(argc, argv);
    body();
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : wrong_usage;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "blockyard: %s\n", out_of_memory);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "blockyard: %s\n", error.what());
  }
  return bad_input;
}

/// Lines 'progress FRACTION TEXT' on standard error, ten a second at most; nothing unless `wanted`.
inline Progress progress_lines(bool wanted, const char* text) {
  if (!wanted) return {};
  return [text, last = std::chrono::steady_clock::time_point()](double fraction) mutable {
    constexpr std::chrono::milliseconds pause(100);
    const auto now = std::chrono::steady_clock::now();
    if (now - last < pause) return;
    last = now;
    std::fprintf(stderr, "progress %.4f %s\n", fraction, text);
  };
}

/// The text and a line's end on standard output. Throws Error.
inline void print(const std::string& text) {
  if (std::fputs((text + "\n").c_str(), stdout) == EOF || std::fflush(stdout) != 0) {
    throw Error("the result can't be written to standard output");
  }
}

/// Throws Error that names the option when 64 bits of nanoseconds don't hold the time.
inline std::uint64_t nanoseconds(double seconds, const char* option) {
  constexpr double most_s = 9e9;
  if (!(seconds >= 0 && seconds <= most_s)) throw Error(std::string(option) + " must be a time of 0 s or later");
  return to_ns(seconds);
}

}  // namespace blockyard::journal::command
