// replay-drop-waits PLAN OUT: the same plan without its waits between threads, a bug planted for the race detector.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <vector>

#include "replay/plan/plan_file.hpp"
#include "replay/plan/plan_writer.hpp"

int main(int argc, char** argv) {
  namespace replay = blockyard::replay;
  if (argc != 3) return 2;
  try {
    const replay::PlanFile plan(argv[1]);
    replay::PlanWriter out(argv[2]);
    for (std::size_t thread = 0; thread < plan.threads().size(); ++thread) {
      plan.for_each_chunk(thread, [&](std::span<const replay::Op> ops) {
        for (replay::Op op : ops) {
          op.after = replay::none;
          out.add(plan.threads()[thread].journal_thread, op);
        }
      });
    }
    replay::PlanHeader header = plan.header();
    out.finish(header, {plan.frames().begin(), plan.frames().end()}, {plan.phases().begin(), plan.phases().end()});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
