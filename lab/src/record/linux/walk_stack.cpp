#include "record/linux/walk_stack.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

#include "base/kept_errno.hpp"
#include "record/linux/modules.hpp"
#include "record/linux/verify.hpp"
#include "unwind/rules.hpp"

namespace blockyard::record {
namespace {

/// Reports what of a stack is new. The records precede the event that they belong to.
class NodeSink final : public unwind::Sink {
 public:
  void add_node(std::uint32_t node, std::uint32_t parent, std::uint64_t frame) override {
    const bool is_root = (frame & unwind::end_marker) != 0;
    if (!is_root) announce_module(unwind::Address{frame}.value());
    const std::uint64_t payload = is_root ? root_flag | (frame & 0xff) : frame;
    append<When::before>(pack(RecordKind::stack_node, payload), pack_pair(node, parent));
  }
  void clear_nodes() override {
    forget_reported();
    append<When::before>(pack(RecordKind::stack_clear, 0));
  }
};

NodeSink node_sink;

#if defined(__x86_64__)
// Calls `function(argument)` on the stack that ends at `top`.
asm(".text\n"
    ".type by_call_on_stack, @function\n"
    "by_call_on_stack:\n"
    "  .cfi_startproc\n"
    "  endbr64\n"
    "  push %rbp\n"
    "  .cfi_def_cfa_offset 16\n"
    "  .cfi_offset 6, -16\n"
    "  mov %rsp, %rbp\n"
    "  .cfi_def_cfa_register 6\n"
    "  mov %rdx, %rsp\n"
    "  mov %rdi, %rax\n"
    "  mov %rsi, %rdi\n"
    "  call *%rax\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  .cfi_def_cfa 7, 8\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size by_call_on_stack, .-by_call_on_stack\n");
extern "C" __attribute__((visibility("hidden"))) void by_call_on_stack(void (*function)(void*), void* argument,
                                                                       void* top);
#else
inline void by_call_on_stack(void (*function)(void*), void* argument, void*) { function(argument); }
#endif

struct Walk {
  unwind::Start start;
  std::uint32_t node;
};

void walk_now(void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  walk.node = self.walker->walk(walk.start, node_sink);
}

constexpr std::size_t guard_bytes = std::size_t{64} << 10;  // the largest page that a processor has
constexpr std::size_t spare_stack_bytes = guard_bytes + (std::size_t{32} << 10);

// A fiber's stack may have a kilobyte left, a signal handler's four. A walk takes up to three.
void walk_elsewhere(Walk& walk) {
  void*& spare = self.producer.slot->spare_stack;
  if (spare == nullptr) {
    constexpr std::size_t bytes = spare_stack_bytes;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    mprotect(memory, guard_bytes, PROT_NONE);
    spare = static_cast<std::byte*>(memory) + bytes;
  }
  by_call_on_stack(walk_now, &walk, spare);
}

}  // namespace

unwind::Walker* walker_of(Slot& slot) {
  if (process->stack_depth == 0) return nullptr;
  auto* walker = static_cast<unwind::Walker*>(slot.walker);
  if (walker != nullptr) {
    walker->start_thread();
  } else {
    slot.walker = walker = unwind::Walker::create(process->stack_depth);
  }
  return walker;
}

void forget_walks() {
  unwind::forget_rule_being_added();
  forget_modules();
}

void end_walks(Slot& slot) {
  if (slot.walker != nullptr) unwind::Walker::destroy(static_cast<unwind::Walker*>(slot.walker));
  if (slot.spare_stack != nullptr)
    munmap(static_cast<std::byte*>(slot.spare_stack) - spare_stack_bytes, spare_stack_bytes);
}

void forget_reported() {
  for (ThreadState::Range& range : self.reported) range = {0, 0};
}

std::uint32_t walk_stack(const void* frame) {
  const unwind::Start start = unwind::caller_of(frame);
  std::uint32_t node = 0;
  if (__builtin_expect(self.walker->is_on_own_stack(start.rsp), 1)) {
    node = self.walker->walk(start, node_sink);
  } else {
    const base::KeptErrno kept;
    Walk walk{start, 0};
    walk_elsewhere(walk);
    node = walk.node;
  }
  if (__builtin_expect(process->verify_stacks != 0, 0) && verifier_is_loaded()) {
    const base::KeptErrno kept;
    verify_stack(start, *self.walker, *process->mapped.control);
  }
  return node;
}

}  // namespace blockyard::record
