#include "kubelet/container/expansion.h"

namespace keelson::kubelet {

std::string Expand(std::string_view text,
                   const std::function<std::optional<std::string>(const std::string&)>& lookup,
                   std::string* unknown) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$' || i + 1 == text.size()) {
      out.push_back(text[i]);
      continue;
    }
    char next = text[++i];
    if (next == '$') {
      out.push_back('$');
      continue;
    }
    size_t close = next == '(' ? text.find(')', i + 1) : std::string_view::npos;
    if (close == std::string_view::npos) {  // no reference: what stands there stays
      out.push_back('$');
      out.push_back(next);
      continue;
    }
    std::string name(text.substr(i + 1, close - i - 1));
    if (auto value = lookup(name)) {
      out += *value;
    } else {
      if (unknown && unknown->empty()) *unknown = name;
      out += "$(" + name + ")";
    }
    i = close;
  }
  return out;
}

}  // namespace keelson::kubelet
