#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <re2/re2.h>

#include "lib/base/text.h"
#include "lib/k8s/schema/json_path_step.h"

namespace keelson::k8s {

namespace {

using Step = JsonPath::Step;
using Steps = std::vector<Step>;

constexpr int kMaxDepth = 10;

Error Bad(std::string why) { return Error(Code::kInvalid, std::move(why)); }

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

class Parser {
 public:
  Parser(std::string_view path, int depth) : rest_(path), depth_(depth) {}

  Result<Steps> Parse() {
    if (depth_ > kMaxDepth) return Bad("the path nests too deep");
    while (!rest_.empty()) KEELSON_RETURN_IF_ERROR(Next());
    return std::move(steps_);
  }

 private:
  static bool EndsName(char c) {
    return std::string_view(" \t\r\n.,[]$@{}").find(c) != std::string_view::npos;
  }

  Result<> Next() {
    if (rest_.starts_with("[?(")) return Filter();
    if (rest_.starts_with("..")) return Recursive();
    const char c = rest_[0];
    switch (c) {
      case '\r':
      case '\n':
        return Bad("unclosed action");
      case ' ':
      case '@':
      case '$':
        rest_.remove_prefix(1);
        return {};
      case '[':
        return Brackets();
      case '.':
        rest_.remove_prefix(1);
        return Field();
      default:
        break;
    }
    if (c == '_' || isalpha(static_cast<unsigned char>(c))) {
      return Bad(fmt::format("unrecognized identifier {}", rest_.substr(0, NameSize())));
    }
    return Bad(
        fmt::format("unrecognized character in action: U+{:04X} '{}'", static_cast<unsigned char>(c), c));
  }

  size_t NameSize() const {
    size_t size = 0;
    while (size < rest_.size() && !EndsName(rest_[size])) size += rest_[size] == '\\' ? 2 : 1;
    return std::min(size, rest_.size());
  }

  Result<> Field() {
    const std::string_view text = rest_.substr(0, NameSize());
    rest_.remove_prefix(text.size());
    Step& step = steps_.emplace_back();
    if (text == "*") {
      step.kind = Step::Kind::kWildcard;
      return {};
    }
    std::copy_if(text.begin(), text.end(), std::back_inserter(step.name), [](char c) { return c != '\\'; });
    return {};
  }

  Result<> Recursive() {
    if (!steps_.empty() && steps_.back().kind == Step::Kind::kRecursive) {
      return Bad("invalid multiple recursive descent");
    }
    rest_.remove_prefix(2);
    steps_.emplace_back().kind = Step::Kind::kRecursive;
    if (rest_.empty() || EndsName(rest_[0])) return {};
    return Field();
  }

  Result<> Below(std::string_view path, Steps& out) const {
    KEELSON_ASSIGN_OR_RETURN(out, Parser(path, depth_ + 1).Parse());
    return {};
  }

  Result<> Brackets() {
    const size_t end = rest_.find(']');
    if (end == std::string_view::npos) return Bad("unterminated array");
    std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    if (text == "*") text = ":";
    if (text.find(',') != std::string_view::npos) return Union(text);
    if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'' &&
        text.find('\'', 1) == text.size() - 1) {
      // The name of a key is read like a path, with its dots escaped.
      Steps below;
      KEELSON_RETURN_IF_ERROR(Below(fmt::format(".{}", text.substr(1, text.size() - 2)), below));
      steps_.insert(steps_.end(), std::make_move_iterator(below.begin()),
                    std::make_move_iterator(below.end()));
      return {};
    }
    return Slice(text);
  }

  Result<> Union(std::string_view text) {
    Step step;
    step.kind = Step::Kind::kUnion;
    for (std::string_view part : Split(text, ',')) {
      KEELSON_RETURN_IF_ERROR(Below(fmt::format("[{}]", Trim(part, " ")), step.paths.emplace_back()));
    }
    steps_.push_back(std::move(step));
    return {};
  }

  Result<> Slice(std::string_view text) {
    static const re2::RE2 form(R"(^-?\d*(:-?\d*)?(:-?\d*)?$)");
    if (!re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), form)) {
      return Bad(fmt::format("invalid array index {}", text));
    }
    Step step;
    step.kind = Step::Kind::kSlice;
    const std::vector<std::string_view> parts = Split(text, ':');
    std::optional<int64_t>* const limits[] = {&step.begin, &step.end, &step.stride};
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) continue;
      *limits[i] = ParseNumber<int64_t>(parts[i]);
      if (!*limits[i]) return Bad(fmt::format("array index {} is not a number", parts[i]));
    }
    if (parts.size() == 1) {
      step.end_is_derived = true;
      step.end = step.begin.value_or(0) + 1;
    }
    steps_.push_back(std::move(step));
    return {};
  }

  // The text up to the parenthesis that ends the filter; those in quotes do not.
  Result<std::string_view> FilterText() {
    rest_.remove_prefix(3);
    char quote = 0;
    for (size_t i = 0; i < rest_.size() && rest_[i] != '\n'; ++i) {
      const char c = rest_[i];
      if (quote) {
        if (c == quote && rest_[i - 1] != '\\') quote = 0;
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == ')') {
        const std::string_view text = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        if (!rest_.starts_with(']')) return Bad("unclosed array expect ]");
        rest_.remove_prefix(1);
        return text;
      }
    }
    return Bad("unterminated filter");
  }

  Result<> Filter() {
    KEELSON_ASSIGN_OR_RETURN(const std::string_view text, FilterText());
    static const re2::RE2 comparison("^([^!<>=]+)([!<>=]+)(.+?)$");
    Step step;
    step.kind = Step::Kind::kFilter;
    re2::StringPiece left, op, right;
    if (!re2::RE2::FullMatch(re2::StringPiece(text.data(), text.size()), comparison, &left, &op, &right)) {
      KEELSON_RETURN_IF_ERROR(Below(text, step.left));
      steps_.push_back(std::move(step));
      return {};
    }
    step.op = std::string(op);
    constexpr std::string_view kOperators[] = {"==", "!=", "<", ">", "<=", ">="};
    if (std::find(std::begin(kOperators), std::end(kOperators), step.op) == std::end(kOperators)) {
      return Bad(fmt::format("unrecognized filter operator {}", step.op));
    }
    KEELSON_RETURN_IF_ERROR(Below({left.data(), left.size()}, step.left));
    const std::string_view operand = Trim({right.data(), right.size()}, " ");
    if (!Literal(operand, step)) KEELSON_RETURN_IF_ERROR(Below(operand, step.right));
    steps_.push_back(std::move(step));
    return {};
  }

  static bool Literal(std::string_view text, Step& step) {
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
      std::string plain;
      for (size_t i = 1; i + 1 < text.size(); ++i) {
        if (text[i] == '\\' && i + 2 < text.size()) ++i;
        plain += text[i];
      }
      step.literal = boost::json::value(plain);
    } else if (text == "true" || text == "false") {
      step.literal = boost::json::value(text == "true");
    } else if (const auto integer = ParseNumber<int64_t>(text)) {
      step.literal = boost::json::value(*integer);
    } else if (const auto number = ParseNumber<double>(text)) {
      step.literal = boost::json::value(*number);
    } else {
      return false;
    }
    return true;
  }

  std::string_view rest_;
  const int depth_;
  Steps steps_;
};

}  // namespace

Result<Steps> ParseJsonPath(std::string_view path) { return Parser(path, 0).Parse(); }

}  // namespace keelson::k8s
