#include "kubelet/container/container_hash.h"

#include <fmt/format.h>

namespace keelson::kubelet {

namespace {

// The three bytes of U+2028 and U+2029, which Go escapes for JavaScript's sake.
bool IsLineSeparator(std::string_view text) {
  return text.size() >= 3 && text.substr(0, 2) == "\xe2\x80" && (text[2] == '\xa8' || text[2] == '\xa9');
}

// A string as Go's encoding/json writes it: what HTML gives a meaning to is escaped too. `text` is UTF-8: the
// API has no other strings.
void AppendGoJson(std::string_view text, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
      case '\\':
        out += '\\';
        out += c;
        continue;
      case '\b':
        out += "\\b";
        continue;
      case '\f':
        out += "\\f";
        continue;
      case '\n':
        out += "\\n";
        continue;
      case '\r':
        out += "\\r";
        continue;
      case '\t':
        out += "\\t";
        continue;
      case '<':
      case '>':
      case '&':
        out += fmt::format("\\u{:04x}", c);
        continue;
      default:
        break;
    }
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else if (IsLineSeparator(text.substr(i))) {
      out += text[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += c;
    }
  }
  out += '"';
}

// Of earlier Keelson kubelets: 64 bit, name and image each ended by a byte that UTF-8 does not have.
std::string EarlierHash(const corev1::Container& container) {
  uint64_t hash = 14695981039346656037ull;
  for (const std::string* text : {&container.name(), &container.image()}) {
    for (unsigned char c : *text) hash = (hash ^ c) * 1099511628211ull;
    hash = (hash ^ 0xff) * 1099511628211ull;
  }
  return fmt::format("{:x}", hash);
}

}  // namespace

std::string ContainerHash(const corev1::Container& container) {
  std::string json = "{\"image\":";
  AppendGoJson(container.image(), json);
  json += ",\"name\":";
  AppendGoJson(container.name(), json);
  json += '}';
  std::string printed = "([]uint8)[";
  for (size_t i = 0; i < json.size(); ++i) {
    printed += (i ? " " : "") + std::to_string(static_cast<unsigned char>(json[i]));
  }
  printed += ']';
  uint32_t hash = 2166136261u;
  for (unsigned char c : printed) hash = (hash ^ c) * 16777619u;
  return fmt::format("{:x}", hash);
}

bool IsMadeFrom(const corev1::Container& container, const std::string& hash) {
  return hash == ContainerHash(container) || hash == EarlierHash(container);
}

}  // namespace keelson::kubelet
