#include "proxy/dns/message/name.h"

#include <cstdio>

namespace keelson::proxy::dns {

Result<Name> ParseName(std::string_view text) {
  Name out;
  if (!text.empty() && text.back() == '.') text.remove_suffix(1);
  while (!text.empty()) {
    size_t dot = text.find('.');
    std::string_view label = text.substr(0, dot);
    if (!IsLabel(label) || dot + 1 == text.size()) {
      return Error(Code::kInvalid, "invalid domain name: empty or too long label");
    }
    out += static_cast<char>(label.size());
    for (char c : label) out += Lower(c);
    text.remove_prefix(dot == std::string_view::npos ? text.size() : dot + 1);
  }
  out += '\0';
  if (out.size() > kMaxNameSize) return Error(Code::kInvalid, "invalid domain name: too long");
  return out;
}

std::string NameText(std::string_view wire) {
  std::string out;
  for (std::string_view label = TakeLabel(wire); !label.empty(); label = TakeLabel(wire)) {
    for (char c : label) {
      if (c > ' ' && c < 0x7f && c != '.' && c != '\\') {
        out += c;
        continue;
      }
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\%03u", static_cast<unsigned>(static_cast<uint8_t>(c)));
      out += escaped;
    }
    out += '.';
  }
  return out.empty() ? "." : out;
}

Name Join(std::string_view label, std::string_view parent) {
  Name out;
  out.reserve(1 + label.size() + parent.size());
  out += static_cast<char>(label.size());
  for (char c : label) out += Lower(c);
  out += parent;
  return out;
}

bool IsLabel(std::string_view label) { return !label.empty() && label.size() <= kMaxLabelSize; }

bool IsName(std::string_view wire) {
  if (wire.size() > kMaxNameSize) return false;
  while (!wire.empty() && wire[0] != '\0') {
    size_t size = static_cast<uint8_t>(wire[0]);
    if (size > kMaxLabelSize || size >= wire.size()) return false;
    wire.remove_prefix(1 + size);
  }
  return wire.size() == 1;
}

bool EndsWith(std::string_view wire, std::string_view suffix) {
  while (wire.size() > suffix.size()) {
    if (TakeLabel(wire).empty()) return false;
  }
  return wire == suffix;
}

}  // namespace keelson::proxy::dns
