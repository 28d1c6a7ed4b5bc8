// fieldPath of rules.
#include <optional>

#include <fmt/format.h>

#include "lib/k8s/schema/decl_types.h"

namespace keelson::k8s {

namespace {

Error Bad(std::string why) { return Error(Code::kInvalid, std::move(why)); }

// The next of ".", "[", "]", 'quoted text' and other text; empty at the end.
std::string_view NextToken(std::string_view& rest) {
  constexpr std::string_view kDelimiters = ".[]";
  size_t size = rest.empty() ? 0 : 1;
  if (rest.starts_with('\'')) {
    while (size < rest.size() && (rest[size] != '\'' || rest[size - 1] == '\\')) ++size;
    size = std::min(size + 1, rest.size());
  } else if (size > 0 && kDelimiters.find(rest[0]) == std::string_view::npos) {
    size = std::min(rest.find_first_of(kDelimiters), rest.size());
  }
  const std::string_view token = rest.substr(0, size);
  rest.remove_prefix(size);
  return token;
}

Result<std::string> Unescape(std::string_view text) {
  constexpr std::string_view kFrom = "abfnrtv'\\", kTo = "\a\b\f\n\r\t\v'\\";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const size_t known = kFrom.find(text[++i]);
    if (known == std::string_view::npos) {
      return Bad(fmt::format("invalid string literal: invalid escape char \\{}", text[i]));
    }
    out += kTo[known];
  }
  return out;
}

}  // namespace

Result<std::string> ResolveFieldPath(const SchemaNodes& nodes, NodeIndex from, std::string_view path) {
  std::string out;
  const auto step = [&](std::string_view name) -> Result<> {
    const SchemaNode& node = nodes.nodes[from];
    if (node.properties.size > 0) {
      from = nodes.Property(node, name);
      if (!out.empty()) out += '.';
      out += name;
    } else {
      from = node.additional;
      out += fmt::format("[{}]", name);
    }
    if (from == kNoNode) return Bad("does not refer to a valid field");
    return {};
  };
  for (std::string_view token = NextToken(path); !token.empty(); token = NextToken(path)) {
    if (token == ".") {
      token = NextToken(path);
      if (token.empty()) return Bad("unexpected end of JSON path");
      KEELSON_RETURN_IF_ERROR(step(token));
    } else if (token == "[") {
      token = NextToken(path);
      if (token.empty()) return Bad("unexpected end of JSON path");
      if (token.size() < 2 || token.front() != '\'' || token.back() != '\'') {
        return Bad(fmt::format("expected single quoted string but got {}", token));
      }
      KEELSON_ASSIGN_OR_RETURN(const std::string name, Unescape(token.substr(1, token.size() - 2)));
      KEELSON_RETURN_IF_ERROR(step(name));
      token = NextToken(path);
      if (token.empty()) return Bad("unexpected end of JSON path");
      if (token != "]") return Bad(fmt::format("expected ] but got {}", token));
    } else {
      return Bad(fmt::format("expected [ or . but got: {}", token));
    }
  }
  return out;
}

}  // namespace keelson::k8s
