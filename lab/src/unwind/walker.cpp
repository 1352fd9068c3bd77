#include "unwind/walker.hpp"

#include <new>

#include <sys/mman.h>

#include "unwind/objects.hpp"

namespace blockyard::unwind {
namespace {

constexpr unsigned untested = ~0u;
std::uint64_t objects_generation = 1;

constexpr std::uint64_t digest_of_root(End why) { return digest_of_path(0, marker_of(why)); }

/// A term's value; false where memory that it needs can't be read. `word` gets what was read, if anything.
struct Values {
  std::uint64_t rsp;
  std::uint64_t rbp;
  std::uint64_t cfa;

  std::uint64_t base_of(const Term& term) const {
    switch (term.base) {
      case Term::Base::rsp:
        return rsp + static_cast<std::uint64_t>(term.offset);
      case Term::Base::rbp:
        return rbp + static_cast<std::uint64_t>(term.offset);
      case Term::Base::cfa:
        return cfa + static_cast<std::uint64_t>(term.offset);
      default:
        return static_cast<std::uint64_t>(term.offset);
    }
  }
};

}  // namespace

Walker* Walker::create(unsigned depth) {
  if (!rule_cache.prepare()) return nullptr;
  void* memory =
      mmap(nullptr, sizeof(Walker), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Default-initialised: the arrays stay untouched.
  auto* walker = new (memory) Walker;
  walker->depth_ = depth;
  walker->steps_ = 0;
  walker->top_ = 0;
  walker->end_ = End::complete;
  walker->why_ = End::complete;
  walker->crossed_ = false;
  walker->needs_all_ = false;
  walker->cut_first_ = 0;
  walker->cut_known_ = 0;
  walker->start_thread();
  return walker;
}

void Walker::destroy(Walker* walker) {
  walker->trie_.clear();
  munmap(walker, sizeof(Walker));
}

void Walker::start_thread() {
  count_ = 0;
  is_deep_ = false;
  stack_.forget();
  trie_.clear();
  generation_ = __atomic_load_n(&objects_generation, __ATOMIC_ACQUIRE);
}

void Walker::objects_changed() {
  __atomic_add_fetch(&objects_generation, 1, __ATOMIC_ACQ_REL);
  rule_cache.clear();
}

std::uint32_t Walker::walk(const Start& start, Sink& sink) {
  const std::uint64_t generation = __atomic_load_n(&objects_generation, __ATOMIC_ACQUIRE);
  if (__builtin_expect(generation_ != generation, 0)) {
    generation_ = generation;
    count_ = 0;
    trie_.clear();
    sink.clear_nodes();
  }
  const unsigned kept = follow(start);
  if (__builtin_expect(needs_all_, 0)) {
    follow_all_registers(start);
    count_ = 0;
    return number_path(0, sink);
  }
  return keep(kept, sink);
}

// The frames before `count`, from the thread's beginning on, of which no word has changed.
unsigned Walker::unchanged_frames(unsigned count, StackMemory& memory) {
  if (!memory.reach(top_)) return 0;
  const auto word_change = [this](std::uint32_t index) {
    std::uint64_t now = 0;
    std::memcpy(&now, reinterpret_cast<const void*>(words_[index].place), sizeof now);
    return now ^ words_[index].value;
  };
  const auto pair_change = [this](std::uint32_t index) {
    Pair::Words now;
    std::memcpy(&now, reinterpret_cast<const void*>(pairs_[index].place), sizeof now);
    return now ^ pairs_[index].values;
  };
  const Frame& last = frames_[count - 1];
  std::uint64_t changed = 0;
  Pair::Words changed_pairs{};
  for (std::uint32_t index = 0; index < last.words_end; ++index) changed |= word_change(index);
  for (std::uint32_t index = 0; index < last.pairs_end; ++index) changed_pairs |= pair_change(index);
  changed |= changed_pairs[0] | changed_pairs[1];
  if (__builtin_expect(changed == 0, 1)) return count;
  std::uint32_t word = 0;
  std::uint32_t pair = 0;
  for (unsigned frame = 0;; ++frame) {
    for (; word < frames_[frame].words_end; ++word) {
      if (word_change(word) != 0) return frame;
    }
    for (; pair < frames_[frame].pairs_end; ++pair) {
      const Pair::Words change = pair_change(pair);
      if ((change[0] | change[1]) != 0) return frame;
    }
  }
}

#if defined(__x86_64__)

// Walks into path_ until a frame of the last stack is met from which on nothing has changed, and returns how many
// frames of it stay: 0 when the walk ended by itself.
unsigned Walker::follow(const Start& start) {
  StackMemory memory = stack_.memory_for(start.rsp);
  Step frame;
  frame.address = Address::of_call(start.return_address);
  frame.rsp = start.rsp;
  frame.rbp = start.rbp;
  unsigned cursor = count_;
  unsigned unchanged = untested;
  const unsigned limit = is_deep_ ? depth_ : most_frames;
  steps_ = 0;
  crossed_ = false;
  needs_all_ = false;
  for (;;) {
    while (cursor > 0 && frames_[cursor - 1].rsp < frame.rsp) --cursor;
    if (cursor > 0 && !crossed_) {
      const Frame& last = frames_[cursor - 1];
      if (last.rsp == frame.rsp && last.address == frame.address && (last.rbp == frame.rbp || !last.needs_rbp)) {
        if (unchanged == untested) unchanged = unchanged_frames(cursor, memory);
        if (cursor <= unchanged) return cursor;
      }
    }
    if (__builtin_expect(steps_ == limit, 0)) {
      why_ = End::depth;
      return 0;
    }
    Step& step = path_[steps_];
    step.address = frame.address;
    step.rsp = frame.rsp;
    step.rbp = frame.rbp;
    step.cfa.place = 0;
    step.return_address.place = 0;
    step.saved_rbp.place = 0;
    step.uses_rbp = false;
    step.changes_rbp = false;
    PackedRule rule = rule_cache.find(frame.address);
    if (__builtin_expect(rule == 0, 0)) rule = make_rule(frame.address, space_);
    // With constants in place of the rule's offsets, the processor reads up the chain of saved frame pointers without
    // waiting for the rules.
    if (rule == frame_pointer_rule && frame.rbp >= frame.rsp && frame.rbp % 8 == 0 && frame.rbp < memory.high - 15) {
      step.uses_rbp = true;
      step.changes_rbp = true;
      step.saved_rbp.place = frame.rbp;
      step.return_address.place = frame.rbp + 8;
      std::memcpy(&step.saved_rbp.value, reinterpret_cast<const void*>(frame.rbp), 8);
      std::memcpy(&step.return_address.value, reinterpret_cast<const void*>(frame.rbp + 8), 8);
      ++steps_;
      frame.rsp = frame.rbp + 16;
      frame.rbp = step.saved_rbp.value;
      frame.address = Address::of_call(step.return_address.value);
      if (__builtin_expect(step.return_address.value != 0, 1)) continue;
      why_ = End::complete;
      return 0;
    }
    const RuleKind kind = kind_of(rule);
    if (__builtin_expect(kind <= RuleKind::from_rbp, 1)) {
      step.uses_rbp = kind == RuleKind::from_rbp;
      const std::uint64_t cfa = (step.uses_rbp ? frame.rbp : frame.rsp) + static_cast<std::uint64_t>(cfa_offset(rule));
      ++steps_;
      if (cfa <= frame.rsp || cfa % 8 != 0) {
        why_ = End::outside_stack;
        return 0;
      }
      step.return_address.place = cfa - 8;
      if (!memory.load(cfa - 8, step.return_address.value)) {
        step.return_address.place = 0;
        why_ = memory.grows ? End::unreadable : End::outside_stack;
        return 0;
      }
      if (saves_rbp(rule)) {
        step.changes_rbp = true;
        step.saved_rbp.place = cfa + static_cast<std::uint64_t>(rbp_offset(rule));
        if (step.saved_rbp.place < lowest_word(frame) || !memory.load(step.saved_rbp.place, step.saved_rbp.value)) {
          step.saved_rbp.place = 0;
          why_ = End::unreadable;
          return 0;
        }
        frame.rbp = step.saved_rbp.value;
      }
      frame.rsp = cfa;
      frame.address = Address::of_call(step.return_address.value);
    } else if (kind == RuleKind::special) {
      ++steps_;
      why_ = step_special(special_rule(special_index(rule)), memory, step, frame);
      if (why_ != End::complete) return 0;
    } else if (kind == RuleKind::end) {
      why_ = end_of(rule);
      // What points at no code is no frame.
      if (why_ != End::bad_return || steps_ == 0) ++steps_;
      if (is_entry(rule)) step.address = Address::exact(frame.address.instruction_pointer());
      return 0;
    } else {
      needs_all_ = true;
      return 0;
    }
    if (__builtin_expect(step.return_address.value == 0, 0)) {  // by convention, the first frame's
      why_ = End::complete;
      return 0;
    }
  }
}

// A frame's words lie above its stack pointer. Where a signal interrupted a function that had already popped some, they
// lie below it, in the 128 bytes that the handler's frame leaves alone.
std::uint64_t Walker::lowest_word(const Step& step) { return step.rsp - (step.address.is_exact() ? 128 : 0); }

// One step by a longer rule, into `next`. End::complete where it went well.
End Walker::step_special(const SpecialRule& rule, StackMemory& memory, Step& step, Step& next) {
  Values values{step.rsp, step.rbp, 0};
  const auto load = [&](std::uint64_t place, Word& word) {
    if (place < lowest_word(step) || !memory.load(place, word.value)) return false;
    word.place = place;
    return true;
  };
  step.uses_rbp = rule.cfa.base == Term::Base::rbp || rule.return_place.base == Term::Base::rbp ||
                  (rule.rbp_is_saved && rule.rbp_place.base == Term::Base::rbp);
  values.cfa = values.base_of(rule.cfa);
  if (rule.cfa.is_loaded) {
    if (!load(values.cfa, step.cfa)) return End::unreadable;
    values.cfa = step.cfa.value + static_cast<std::uint64_t>(rule.cfa.after);
  }
  if (!load(values.base_of(rule.return_place), step.return_address)) return End::unreadable;
  if (rule.rbp_is_saved) {
    if (!load(values.base_of(rule.rbp_place), step.saved_rbp)) return End::unreadable;
    next.rbp = step.saved_rbp.value;
  } else if (rule.rbp_is_lost) {
    next.rbp = 0;
  }
  step.changes_rbp = rule.rbp_is_saved || rule.rbp_is_lost;
  if (!enter(values.cfa, step.rsp, rule.is_signal_frame, memory)) return End::outside_stack;
  next.rsp = values.cfa;
  next.address =
      rule.is_signal_frame ? Address::exact(step.return_address.value) : Address::of_call(step.return_address.value);
  return End::complete;
}

// Whether the caller's stack pointer may be `rsp`. A signal handler may run on a stack of its own.
bool Walker::enter(std::uint64_t rsp, std::uint64_t from, bool is_signal_frame, StackMemory& memory) {
  if (rsp > from && rsp % 8 == 0 && memory.reach(rsp)) return true;
  if (!is_signal_frame || rsp % 8 != 0 || !is_readable(rsp)) return false;
  memory = stack_.memory_for(rsp);
  crossed_ = true;
  return true;
}

#else

// Other processors: the caller alone, and a marker that says so.
unsigned Walker::follow(const Start& start) {
  count_ = 0;
  steps_ = 1;
  crossed_ = false;
  needs_all_ = false;
  why_ = End::no_rules;
  path_[0] = Step{};
  path_[0].address = Address::of_call(start.return_address);
  return 0;
}

void Walker::follow_all_registers(const Start&) {}

#endif

// Puts the walk's frames on top of the first `kept` of the last stack, and returns the number of the whole.
std::uint32_t Walker::keep(unsigned kept, Sink& sink) {
  const unsigned total = kept + steps_;
  is_deep_ = kept == 0 && why_ == End::depth;
  if (__builtin_expect(is_deep_ || crossed_ || total > most_frames || total == 0, 0)) {
    is_deep_ |= total > most_frames;
    const std::uint32_t node = number_path(kept, sink);
    count_ = 0;
    return node;
  }
  std::uint32_t words = 0;
  std::uint32_t pairs = 0;
  std::uint64_t digest = 0;
  bool needs_rbp = false;
  if (kept > 0) {
    const Frame& last = frames_[kept - 1];
    words = last.words_end;
    pairs = last.pairs_end;
    digest = last.digest;
    needs_rbp = last.needs_rbp;
  } else {
    end_ = why_;
    top_ = 0;
    digest = digest_of_root(end_);
  }
  const Step* step = path_ + steps_;
  for (unsigned index = kept; index < total; ++index) {
    --step;
    const auto add_word = [&](const Word& word) {
      if (word.place == 0) return;
      words_[words++] = word;
      if (word.place + sizeof word.value > top_) top_ = word.place + sizeof word.value;
    };
    if (__builtin_expect(step->cfa.place != 0, 0)) add_word(step->cfa);
    const std::uint64_t place = step->return_address.place;
    if (needs_rbp && place != 0 && step->saved_rbp.place == place - sizeof place) {
      const Pair::Words values{step->saved_rbp.value, step->return_address.value};
      pairs_[pairs++] = {values, step->saved_rbp.place};
      if (place + sizeof place > top_) top_ = place + sizeof place;
    } else {
      add_word(step->return_address);
      if (needs_rbp) add_word(step->saved_rbp);
    }
    digest = digest_of_path(digest, step->address.bits);
    needs_rbp = step->uses_rbp || (!step->changes_rbp && needs_rbp);
    frames_[index] = {step->address, step->rsp, step->rbp, digest, words, pairs, needs_rbp};
  }
  count_ = total;
  steps_ = 0;
  if (kept < cut_known_) cut_known_ = kept;
  if (__builtin_expect(total > depth_, 0)) return number_cut_stack(sink);
  const std::uint32_t node = trie_.find(digest);
  return __builtin_expect(node != no_node, 1) ? node : add_path(0, total, end_, sink);
}

// The first frame that is kept of `total`. It moves in steps, so that deep stacks that differ near their end share what
// precedes it: if it moved with each call, a stack that is one call deeper would be new from its first frame on. Of a
// stack whose depth is not known it can only lie so far from the end.
unsigned Walker::first_kept(unsigned total) const {
  if (total <= depth_) return 0;
  if (is_deep_) return total - depth_;
  const unsigned step = depth_ < 4 ? 1 : depth_ / 4;
  return (total - depth_ + step - 1) / step * step;
}

// The number of the last stack, which has more than depth_ frames. The digests of those that have not changed since the
// last such stack are still there.
std::uint32_t Walker::number_cut_stack(Sink& sink) {
  const unsigned first = first_kept(count_);
  if (cut_first_ != first || cut_known_ < first) {
    cut_first_ = first;
    cut_known_ = first;
  }
  std::uint64_t digest = cut_known_ == first ? digest_of_root(End::depth) : digests_[cut_known_ - 1 - first];
  for (unsigned index = cut_known_; index < count_; ++index) {
    digest = digest_of_path(digest, frames_[index].address.bits);
    digests_[index - first] = digest;
  }
  cut_known_ = count_;
  const std::uint32_t node = trie_.find(digest);
  return node != no_node ? node : add_path(first, count_, End::depth, sink);
}

Address Walker::address_at(unsigned index, unsigned kept) const {
  return index < kept ? frames_[index].address : path_[kept + steps_ - 1 - index].address;
}

// The number of the walk's frames and, before them, the `kept` of the last stack.
std::uint32_t Walker::number_path(unsigned kept, Sink& sink) {
  const unsigned total = kept + steps_;
  const unsigned first = first_kept(total);
  const End why = first > 0 ? End::depth : (kept > 0 ? end_ : why_);
  std::uint64_t digest = digest_of_root(why);
  cut_known_ = 0;
  for (unsigned index = first; index < total; ++index) {
    digest = digest_of_path(digest, address_at(index, kept).bits);
    digests_[index - first] = digest;
  }
  const std::uint32_t node = trie_.find(digest);
  return node != no_node ? node : add_path(first, kept, why, sink);
}

// Numbers every frame on the path that has no number so far. Starts again with an empty trie when it is full.
std::uint32_t Walker::add_path(unsigned first, unsigned kept, End why, Sink& sink) {
  const unsigned total = kept + steps_;
  const bool is_whole = first == 0 && kept == total;
  const auto digest_at = [&](unsigned index) { return is_whole ? frames_[index].digest : digests_[index - first]; };
  for (bool again = false;; again = true) {
    // The last frame that has a number: then all before it have one, too. Most new paths part from known ones late.
    unsigned known = total;
    std::uint32_t node = no_node;
    while (known > first && (node = trie_.find(digest_at(known - 1))) == no_node) --known;
    bool is_full = false;
    if (known == first && why != End::complete) {
      node = trie_.find(digest_of_root(why));
      if (node == no_node) {
        node = trie_.add(digest_of_root(why));
        is_full = node == no_node;
        if (!is_full) sink.add_node(node, no_node, marker_of(why));
      }
    }
    for (unsigned index = known; index < total && !is_full; ++index) {
      const std::uint32_t parent = node;
      node = trie_.add(digest_at(index));
      is_full = node == no_node;
      if (!is_full) sink.add_node(node, parent, address_at(index, kept).bits);
    }
    if (!is_full || again) return node;
    trie_.clear();
    sink.clear_nodes();
  }
}

std::size_t Walker::last_stack(Address* into, std::size_t capacity, End& end) const {
  const unsigned total = count_ > 0 ? count_ : steps_;
  const unsigned held = total - first_kept(total);
  end = total > depth_ ? End::depth : (count_ > 0 ? end_ : why_);
  for (unsigned index = 0; index < held && index < capacity; ++index)
    into[index] = count_ > 0 ? frames_[count_ - 1 - index].address : path_[index].address;
  return held;
}

}  // namespace blockyard::unwind
