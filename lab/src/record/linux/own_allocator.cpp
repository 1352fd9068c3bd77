#include "record/linux/own_allocator.hpp"

#include <cstddef>
#include <cstring>

#include <elf.h>
#include <link.h>

#include "record/linux/hooks_own.hpp"
#include "record/linux/loaded_objects.hpp"
#include "record/linux/program_symbols.hpp"
#include "record/linux/symbols.hpp"

namespace blockyard::record {
namespace {

bool own_is_hooked = false;
bool is_constructed = false;
[[gnu::constructor]] void note_construction() { is_constructed = true; }

/// An object, by where it was loaded.
struct Wanted {
  const void* inside;  ///< an address in it
  std::size_t changed = 0;
};

int index_of(const char* name) {
  for (std::size_t i = 0; i < function_count; ++i) {
    if (std::strcmp(functions[i].name, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

// Redirects the operators of which the form that throws nothing is there as well, as allocators have it, and with them
// all that take such a block. Of others, what they ask malloc for is recorded.
void redirect_operators() {
  for (unsigned index = new_; index < function_count; ++index) {
    const Function& function = functions[index];
    const bool is_array = function.name[3] == 'a';  // _Znam, _ZdaPv
    const bool is_aligned = std::strstr(function.name, "align_val_t") != nullptr;
    const unsigned throwing = (is_array ? new_array_ : new_) + (is_aligned ? new_aligned_ - new_ : 0u);
    if (functions[throwing].real != nullptr && functions[throwing + 1].real != nullptr)
      redirect(function.real, function.hook, function.is_exported ? function.name : "");
  }
}

// Whether only an allocator has a function of this name, without a prefix.
bool is_plain(int index) { return index <= static_cast<int>(sdallocx_) || index >= static_cast<int>(new_); }

// The allocators that Rust's crates and C programs link in, by the prefix of their names. Our own heap is the last: a
// program that has it for its pools alone may have another one in malloc's place.
constexpr const char* prefixes[] = {"_rjem_", "je_", "mi_", "rp", "tc_", "by_"};

// Redirects the functions of the allocator with this prefix, if it has one. Where an allocator is known already, only
// if it is that one under another name. Whether it was.
bool redirect_allocator(const ProgramSymbols& symbols, const char* prefix) {
  const std::size_t length = std::strlen(prefix);
  void* found[function_count] = {};
  symbols.for_each(STT_FUNC, [&](const char* name, void* address) {
    if (std::strncmp(name, prefix, length) != 0) return;
    const int index = index_of(name + length);
    if (index >= 0 && (length != 0 || is_plain(index))) found[index] = address;
  });
  // A linker leaves out what a program doesn't call: mi_malloc(), in those of Rust.
  const bool gives = found[malloc_] != nullptr || found[mallocx_] != nullptr || found[malloc_aligned_] != nullptr;
  const bool takes = found[free_] != nullptr || found[sdallocx_] != nullptr;
  if (!gives || !takes) return false;
  if (functions[malloc_].real != nullptr && functions[malloc_].real != found[malloc_]) return false;
  for (std::size_t i = 0; i < function_count; ++i) {
    if (functions[i].real == nullptr) functions[i].real = found[i];
    if (i < new_) redirect(found[i], functions[i].hook, "");  // other objects don't ask for it by name
  }
  return true;
}

bool redirect_linked_in(bool is_exported) {
  const ProgramSymbols symbols;
  // What it exports is what other objects ask for; C++'s operators may not be among it.
  bool any = is_exported && redirect_allocator(symbols, "");
  for (const char* prefix : prefixes) {
    if (is_exported || !any) any |= redirect_allocator(symbols, prefix);
  }
  return any;
}

int rewrite(dl_phdr_info* object, std::size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  if (is_ours(*object)) return 0;
  wanted.changed += rewrite_imports(*object, {redirections, redirection_count});
  if (contains(*object, wanted.inside)) wanted.changed += rewrite_calls(*object, {redirections, redirection_count});
  return 0;
}

/// What is to be changed in the object with an allocator of its own.
struct Plan {
  const void* inside;
  std::span<const Redirection> redirections;
  std::span<const CodeChange> changes;
};

int plan_object(dl_phdr_info* object, std::size_t, void* data) {
  Plan& plan = *static_cast<Plan*>(data);
  if (!contains(*object, plan.inside)) return 0;
  plan.changes = plan_calls(*object, plan.redirections);
  return 1;
}

// Redirects what the allocator in front of the hooks has, by whose calls the hooks were reached so far. Its name, "."
// for the program itself, and an address in it; nullptr where there is none.
const void* redirect_own(char (&name)[64], const FoundSymbol& first, bool is_in_front) {
  const void* inside = nullptr;
  if (is_in_front) {
    if (first.object[0] == '\0') {
      name[0] = '.';
      name[1] = '\0';
    } else {
      file_name_of(first.object, name, sizeof name);
    }
    for (Function& function : functions) {
      if (!is_plain(static_cast<int>(&function - functions))) continue;
      const FoundSymbol found = find_anywhere(function.name);
      if (found.address == nullptr || std::strcmp(found.object, first.object) != 0) continue;
      function.real = found.address;
      function.is_exported = true;
      if (&function < functions + new_) redirect(function.real, function.hook, function.name);
    }
    inside = first.address;
    if (name[0] == '.') redirect_linked_in(true);  // its own names for the same functions, and for more
  } else if (redirect_linked_in(false)) {
    name[0] = '.';
    inside = functions[free_].real != nullptr ? functions[free_].real : functions[sdallocx_].real;
  }
  if (inside != nullptr) redirect_operators();
  return inside;
}

}  // namespace

bool hook_own_allocator(char (&name)[64]) {
  note_objects();
  const FoundSymbol first = find_anywhere("malloc");
  const bool is_in_front = first.address != nullptr && first.address != find_next("malloc").address;
  // It hands calls on to us, as it did before our constructors ran: nothing of it needs a hook.
  if (is_in_front && !is_constructed) return true;
  Wanted wanted{redirect_own(name, first, is_in_front)};
  if (wanted.inside == nullptr) return true;
  dl_iterate_phdr(rewrite, &wanted);
  own_is_hooked = wanted.changed > 0;
  return own_is_hooked;
}

bool own_allocator_is_hooked() { return own_is_hooked; }

std::span<const CodeChange> plan_own_of_running() {
  static Plan plan{nullptr, {}, {}};
  const ObjectsLock held;
  static bool is_planned = false;
  if (is_planned) return plan.changes;
  is_planned = true;
  const FoundSymbol first = find_anywhere("malloc");
  char name[64] = {};
  // The hooks of a recorder that was killed are behind those in front.
  const std::size_t before = redirection_count;
  plan.inside = redirect_own(name, first, first.object != nullptr && first.object[0] == '\0');
  plan.redirections = {redirections + before, redirection_count - before};
  if (plan.inside != nullptr) dl_iterate_phdr(plan_object, &plan);
  redirection_count = before;
  return plan.changes;
}

}  // namespace blockyard::record
