#include "journal/anonymous.hpp"

namespace blockyard::journal {

std::string Anonymizer::number(const std::string& name) {
  return numbers_.try_emplace(name, std::to_string(numbers_.size() + 1)).first->second;
}

const Header& Anonymizer::without_texts(const Header& header) {
  header_ = header;
  header_.program = "anonymous";
  header_.command.clear();
  header_.allocator.clear();
  for (auto& thread : header_.threads) {
    if (!thread.name.empty()) thread.name = "thread-" + number(thread.name);
  }
  // A tag is a path: its parts keep their places.
  for (auto& name : header_.names) {
    std::string numbered;
    for (std::size_t at = 0; !name.empty() && at <= name.size();) {
      const std::size_t end = std::min(name.find('/', at), name.size());
      numbered += (at == 0 ? "name-" : "/name-") + number(name.substr(at, end - at));
      at = end + 1;
    }
    name = numbered;
  }
  return header_;
}

}  // namespace blockyard::journal
