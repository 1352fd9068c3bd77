// A program with operators of its own links the heap: its own are called, by the forms that it does not define too.
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

int made = 0;
int gone = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++made;
  return std::malloc(size);
}
void operator delete(void* block) noexcept {
  ++gone;
  std::free(block);
}

int main() {
  ::operator delete[](::operator new[](40, std::nothrow));
  std::printf("%d made, %d gone\n", made, gone);
}
