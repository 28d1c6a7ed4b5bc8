#include "lib/k8s/text/json_problem.h"

#include <fmt/format.h>

namespace keelson::k8s {

namespace {

constexpr int kMaxDepth = 10000;
constexpr char kEnd[] = "unexpected end of JSON input";

// A recursive descent parser that stops at the first invalid byte and keeps no values.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::string Run() {
    if (!Value(0)) return problem_;
    Space();
    if (at_ < text_.size()) Fail("after top-level value");
    return problem_;
  }

 private:
  bool Fail(std::string_view where) {
    if (problem_.empty()) {
      problem_ = at_ >= text_.size() ? kEnd : fmt::format("invalid character {} {}", Printed(), where);
    }
    return false;
  }
  std::string Printed() const {
    const char c = text_[at_];
    if (c == '\'') return "'\\''";
    if (c == '"') return "'\"'";
    if (c == '\\') return "'\\\\'";
    if (c == '\n') return "'\\n'";
    if (c == '\t') return "'\\t'";
    if (static_cast<unsigned char>(c) < 0x20) return fmt::format("'\\x{:02x}'", c);
    return fmt::format("'{}'", c);
  }
  void Space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }

  bool Value(int depth) {
    Space();
    if (at_ >= text_.size()) return Fail("");
    if (depth > kMaxDepth) {
      problem_ = "exceeded max depth";
      return false;
    }
    const char c = text_[at_];
    if (c == '{') return Object(depth);
    if (c == '[') return Array(depth);
    if (c == '"') return String();
    if (c == 't') return Literal("true");
    if (c == 'f') return Literal("false");
    if (c == 'n') return Literal("null");
    if (c == '-' || (c >= '0' && c <= '9')) return Number();
    return Fail("looking for beginning of value");
  }

  bool Object(int depth) {
    ++at_;
    Space();
    if (At('}')) return Step();
    for (;;) {
      Space();
      if (!At('"')) return Fail("looking for beginning of object key string");
      if (!String()) return false;
      Space();
      if (!At(':')) return Fail("after object key");
      ++at_;
      if (!Value(depth + 1)) return false;
      Space();
      if (At('}')) return Step();
      if (!At(',')) return Fail("after object key:value pair");
      ++at_;
    }
  }

  bool Array(int depth) {
    ++at_;
    Space();
    if (At(']')) return Step();
    for (;;) {
      if (!Value(depth + 1)) return false;
      Space();
      if (At(']')) return Step();
      if (!At(',')) return Fail("after array element");
      ++at_;
    }
  }

  bool String() {
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return Step();
      if (static_cast<unsigned char>(c) < 0x20) return Fail("in string literal");
      if (c != '\\') continue;
      ++at_;
      if (at_ >= text_.size()) break;
      if (text_[at_] == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++at_;
          if (at_ >= text_.size()) return Fail("");
          if (!isxdigit(static_cast<unsigned char>(text_[at_]))) {
            return Fail("in \\u hexadecimal character escape");
          }
        }
      } else if (std::string_view("bfnrt\\/\"").find(text_[at_]) == std::string_view::npos) {
        return Fail("in string escape code");
      }
    }
    return Fail("");
  }

  bool Literal(std::string_view word) {
    for (size_t i = 1; i < word.size(); ++i) {
      ++at_;
      if (!At(word[i])) return Fail(fmt::format("in literal {} (expecting '{}')", word, word[i]));
    }
    return Step();
  }

  bool Digits() {
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ > start;
  }
  bool Number() {
    if (At('-')) ++at_;
    if (At('0')) {
      ++at_;
    } else if (!Digits()) {
      return Fail("in numeric literal");
    }
    if (At('.')) {
      ++at_;
      if (!Digits()) return Fail("after decimal point in numeric literal");
    }
    if (At('e') || At('E')) {
      ++at_;
      if (At('+') || At('-')) ++at_;
      if (!Digits()) return Fail("in exponent of numeric literal");
    }
    return true;
  }
  bool Step() {
    ++at_;
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
};

}  // namespace

std::string JsonProblem(std::string_view text) { return Scanner(text).Run(); }

std::string JsonObjectProblem(std::string_view text) {
  if (std::string problem = JsonProblem(text); !problem.empty()) return problem;
  const char first = text[text.find_first_not_of(" \t\r\n")];
  const char* kind = first == '['                                     ? "array"
                     : first == '"'                                   ? "string"
                     : first == 't' || first == 'f'                   ? "bool"
                     : first == '-' || (first >= '0' && first <= '9') ? "number"
                                                                      : nullptr;
  if (!kind) return {};
  return fmt::format("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", kind);
}

}  // namespace keelson::k8s
