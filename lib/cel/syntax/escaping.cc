#include "lib/cel/syntax/escaping.h"

#include <algorithm>
#include <iterator>

namespace keelson::cel {
namespace {

constexpr std::string_view kReserved[] = {
    "as",  "break", "const",     "continue", "else",    "false",  "for",  "function", "if",   "import", "in",
    "let", "loop",  "namespace", "null",     "package", "return", "true", "var",      "void", "while"};

struct Sequence {
  std::string_view text, word;
};
constexpr Sequence kSequences[] = {{"__", "underscores"}, {".", "dot"}, {"-", "dash"}, {"/", "slash"}};

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

bool IsReservedWord(std::string_view word) {
  return std::find(std::begin(kReserved), std::end(kReserved), word) != std::end(kReserved);
}

std::optional<std::string> EscapeFieldName(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return std::nullopt;
  if (IsReservedWord(name)) return "__" + std::string(name) + "__";
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const Sequence* found = nullptr;
    for (const Sequence& sequence : kSequences) {
      if (name.substr(i).starts_with(sequence.text)) found = &sequence;
    }
    if (found) {
      out.append("__").append(found->word).append("__");
      i += found->text.size();
    } else if (IsAlphanumeric(name[i]) || name[i] == '_') {
      out += name[i++];
    } else {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> UnescapeFieldName(std::string_view identifier) {
  std::string out;
  for (size_t i = 0; i < identifier.size();) {
    size_t end =
        identifier.substr(i).starts_with("__") ? identifier.find('_', i + 2) : std::string_view::npos;
    if (end == std::string_view::npos || end == i + 2 || !identifier.substr(end).starts_with("__")) {
      out += identifier[i++];
      continue;
    }
    std::string_view word = identifier.substr(i + 2, end - i - 2);
    auto found = std::find_if(std::begin(kSequences), std::end(kSequences),
                              [&](const Sequence& s) { return s.word == word; });
    if (found != std::end(kSequences)) {
      out.append(found->text);
    } else if (IsReservedWord(word) && i == 0 && end + 2 == identifier.size()) {
      out.append(word);
    } else {
      return std::nullopt;
    }
    i = end + 2;
  }
  return out;
}

}  // namespace keelson::cel
