/// What all containers have by the standard's names, beside Godot's. Included by their headers.
#ifndef BLOCKYARD_DETAIL_STANDARD_NAMES_HPP
#define BLOCKYARD_DETAIL_STANDARD_NAMES_HPP

#include <cstddef>

namespace blockyard::container {

template <class Derived>
class StandardNames {
 public:
  [[nodiscard]] bool empty() const noexcept { return self().is_empty(); }
  [[nodiscard]] auto cbegin() const noexcept { return self().begin(); }
  [[nodiscard]] auto cend() const noexcept { return self().end(); }

  /// Removes what `matches(element)` accepts. How many that were. O(size).
  template <class Matches>
  friend std::size_t erase_if(Derived& from, Matches matches) {
    const std::size_t before = from.size();
    for (auto at = from.begin(); at;) {
      if (matches(*at)) {
        at = from.erase(at);
      } else {
        ++at;
      }
    }
    return before - from.size();
  }

 private:
  const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }
};

}  // namespace blockyard::container

#endif
