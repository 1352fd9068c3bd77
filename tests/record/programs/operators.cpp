// Calls every form of operator new and delete once, by name, with a size of its own; the test expects each exactly
// once.
#include <csetjmp>
#include <cstdio>
#include <new>

namespace {

constexpr std::align_val_t wide{128};
std::size_t counter = 500'000;

std::size_t next_size() { return ++counter; }

}  // namespace

int main() {
  void* volatile block = nullptr;
  const std::nothrow_t quiet{};
  block = ::operator new(next_size());
  ::operator delete(block);
  block = ::operator new[](next_size());
  ::operator delete[](block);
  block = ::operator new(next_size(), quiet);
  ::operator delete(block, quiet);
  block = ::operator new[](next_size(), quiet);
  ::operator delete[](block, quiet);
  block = ::operator new(next_size());
  ::operator delete(block, counter);
  block = ::operator new[](next_size());
  ::operator delete[](block, counter);
  block = ::operator new(next_size(), wide);
  ::operator delete(block, wide);
  block = ::operator new[](next_size(), wide);
  ::operator delete[](block, wide);
  block = ::operator new(next_size(), wide, quiet);
  ::operator delete(block, wide, quiet);
  block = ::operator new[](next_size(), wide, quiet);
  ::operator delete[](block, wide, quiet);
  block = ::operator new(next_size(), wide);
  ::operator delete(block, counter, wide);
  block = ::operator new[](next_size(), wide);
  ::operator delete[](block, counter, wide);
  ::operator delete(nullptr);
  // Failure: the handler runs, and what it allocates is seen too; nothing else is.
  static int handled = 0;
  std::set_new_handler([] {
    ::operator delete(::operator new(600'001));
    if (++handled == 2) std::set_new_handler(nullptr);
  });
  const std::size_t too_much = static_cast<std::size_t>(-1) / 2;
  bool thrown = false;
  try {
    block = ::operator new(too_much);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  if (!thrown || handled != 2 || ::operator new(too_much, quiet) != nullptr) return 1;
  if (::operator new(too_much, wide, quiet) != nullptr) return 2;
  block = ::operator new(700'001);  // recording goes on after an exception
  ::operator delete(block);
  std::puts("done");
  return 0;
}
