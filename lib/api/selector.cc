#include "lib/api/selector.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace keelson::api {
namespace {

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool IsName(std::string_view text) {
  if (text.empty() || !IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (size_t start = 0; start <= text.size();) {
    size_t end = std::min(text.find('.', start), text.size());
    std::string_view label = text.substr(start, end - start);
    auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    if (label.empty() || !good(label.front()) || !good(label.back())) return false;
    if (!std::all_of(label.begin(), label.end(), [&](char c) { return good(c) || c == '-'; })) return false;
    start = end + 1;
  }
  return true;
}

// What is wrong with a label key; empty: nothing.
std::string KeyProblem(std::string_view key) {
  static constexpr std::string_view kNamePart =
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
      "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
      "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
  std::string_view name = key;
  if (size_t slash = key.find('/'); slash != std::string_view::npos) {
    std::string_view prefix = key.substr(0, slash);
    name = key.substr(slash + 1);
    if (prefix.empty()) return "prefix part must be non-empty";
    if (!IsDnsSubdomain(prefix)) {
      return "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
             "'-' or "
             "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for "
             "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    }
  }
  if (name.empty()) return "name part must be non-empty";
  if (name.size() > 63) return "name part must be no more than 63 bytes";
  return IsName(name) ? "" : std::string(kNamePart);
}

std::string ValueProblem(std::string_view value) {
  if (value.size() > 63) return "must be no more than 63 bytes";
  if (value.empty() || IsName(value)) return "";
  return "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
         "must "
         "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
         "used for "
         "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

bool ParseInt(std::string_view text, int64_t& value) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

using Requirement = LabelSelector::Requirement;
using Op = LabelSelector::Op;

Result<> Validate(const Requirement& requirement) {
  auto invalid = [](std::string_view field, std::string_view value, std::string_view why) {
    return Error(Code::kBadRequest, fmt::format("{}: Invalid value: \"{}\": {}", field, value, why));
  };
  if (std::string why = KeyProblem(requirement.key); !why.empty()) {
    return invalid("key", requirement.key, why);
  }
  for (size_t i = 0; i < requirement.values.size(); ++i) {
    const std::string& value = requirement.values[i];
    std::string field = fmt::format("values[{}][{}]", i, requirement.key);
    int64_t number;
    bool compares = requirement.op == Op::kGreaterThan || requirement.op == Op::kLessThan;
    if (compares && !ParseInt(value, number)) {
      return invalid(fmt::format("values[{}]", i), value,
                     "for 'Gt', 'Lt' operators, the value must be an integer");
    }
    if (std::string why = ValueProblem(value); !compares && !why.empty()) return invalid(field, value, why);
  }
  return {};
}

void Sort(std::vector<Requirement>& requirements) {
  for (Requirement& requirement : requirements) {
    std::sort(requirement.values.begin(), requirement.values.end());
    requirement.values.erase(std::unique(requirement.values.begin(), requirement.values.end()),
                             requirement.values.end());
  }
  std::stable_sort(requirements.begin(), requirements.end(),
                   [](const Requirement& a, const Requirement& b) { return a.key < b.key; });
}

// Upstream's grammar, with its error messages.
class LabelParser {
 public:
  explicit LabelParser(std::string_view text) : text_(text) { Advance(); }

  Result<std::vector<Requirement>> Parse() {
    std::vector<Requirement> out;
    if (Is(Token::kEnd)) return out;
    if (!Is(Token::kWord) && token_ != "!") return Found("!, identifier, or 'end of string'");
    while (true) {
      Requirement requirement;
      if (auto done = One(requirement); !done) {
        return Error(Code::kBadRequest, "unable to parse requirement: " + done.error().message());
      }
      out.push_back(std::move(requirement));
      if (Is(Token::kEnd)) return out;
      if (token_ != ",") return Found("',' or 'end of string'");
      Advance();
      if (!Is(Token::kWord) && token_ != "!") return Found("identifier after ','");
    }
  }

 private:
  enum class Token { kEnd, kWord, kSign };

  static bool IsSign(char c) { return std::string_view("=!(),<>").find(c) != std::string_view::npos; }
  static bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  bool Is(Token kind) const { return kind_ == kind; }

  void Advance() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    size_t start = at_;
    if (at_ == text_.size()) {
      kind_ = Token::kEnd;
    } else if (IsSign(text_[at_])) {
      kind_ = Token::kSign;
      for (size_t length : {size_t{2}, size_t{1}}) {
        std::string_view sign = text_.substr(start, length);
        if (length == 1 || sign == "==" || sign == "!=") {
          at_ += length;
          break;
        }
      }
    } else {
      kind_ = Token::kWord;
      while (at_ < text_.size() && !IsSign(text_[at_]) && !IsSpace(text_[at_])) ++at_;
    }
    token_ = text_.substr(start, at_ - start);
  }

  Error Found(std::string_view expected) const {
    return Error(Code::kBadRequest, fmt::format("found '{}', expected: {}", token_, expected));
  }

  Result<> One(Requirement& out) {
    bool absent = token_ == "!";
    if (absent) Advance();
    if (!Is(Token::kWord)) return Found("identifier");
    out.key = token_;
    // Upstream checks the key before it has a path, and prints "<nil>".
    if (std::string why = KeyProblem(out.key); !why.empty()) {
      return Error(Code::kBadRequest, fmt::format("<nil>: Invalid value: \"{}\": {}", out.key, why));
    }
    Advance();
    if (absent || Is(Token::kEnd) || token_ == ",") {
      out.op = absent ? Op::kDoesNotExist : Op::kExists;
      return Validate(out);
    }
    std::string_view sign = token_;
    if (sign == "in" || sign == "notin") {
      out.op = sign == "in" ? Op::kIn : Op::kNotIn;
      Advance();
      KEELSON_RETURN_IF_ERROR(Values(out));
      return Validate(out);
    }
    if (sign == "=" || sign == "==") {
      out.op = Op::kIn;
    } else if (sign == "!=") {
      out.op = Op::kNotIn;
    } else if (sign == ">" || sign == "<") {
      out.op = sign == ">" ? Op::kGreaterThan : Op::kLessThan;
    } else {
      return Found("in, notin, =, ==, !=, gt, lt");
    }
    Advance();
    if (Is(Token::kEnd) || token_ == ",") {
      out.values.push_back("");
      return Validate(out);
    }
    if (!Is(Token::kWord)) return Found("identifier");
    out.values.emplace_back(token_);
    Advance();
    return Validate(out);
  }

  // (a, b): empty values are allowed between the commas.
  Result<> Values(Requirement& out) {
    if (token_ != "(") return Error(Code::kBadRequest, fmt::format("found '{}' expected: '('", token_));
    Advance();
    if (token_ == ")") {
      return Error(Code::kBadRequest,
                   "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty");
    }
    for (bool after_comma = true;; Advance()) {
      if (Is(Token::kWord)) {
        if (!after_comma) return Found("',' or ')'");
        out.values.emplace_back(token_);
        after_comma = false;
      } else if (token_ == ",") {
        if (after_comma) out.values.emplace_back();
        after_comma = true;
      } else if (token_ == ")") {
        if (after_comma) out.values.emplace_back();
        Advance();
        return {};
      } else {
        return Found("',', ')' or identifier");
      }
    }
  }

  std::string_view text_, token_;
  size_t at_ = 0;
  Token kind_ = Token::kEnd;
};

bool MatchesOne(const Requirement& requirement, const LabelMap& labels) {
  auto it = labels.find(requirement.key);
  bool has = it != labels.end();
  const auto& values = requirement.values;
  switch (requirement.op) {
    case Op::kExists:
      return has;
    case Op::kDoesNotExist:
      return !has;
    case Op::kIn:
      return has && std::binary_search(values.begin(), values.end(), it->second);
    case Op::kNotIn:
      return !has || !std::binary_search(values.begin(), values.end(), it->second);
    case Op::kGreaterThan:
    case Op::kLessThan: {
      int64_t value, bound;
      if (!has || values.size() != 1 || !ParseInt(it->second, value) || !ParseInt(values[0], bound)) {
        return false;
      }
      return requirement.op == Op::kGreaterThan ? value > bound : value < bound;
    }
  }
  return false;
}

}  // namespace

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  KEELSON_ASSIGN_OR_RETURN(selector.requirements_, LabelParser(text).Parse());
  Sort(selector.requirements_);
  return selector;
}

Result<LabelSelector> LabelSelector::From(const metav1::LabelSelector& from) {
  static const std::map<std::string_view, Op> kOps = {
      {"In", Op::kIn}, {"NotIn", Op::kNotIn}, {"Exists", Op::kExists}, {"DoesNotExist", Op::kDoesNotExist}};
  LabelSelector selector = FromMap(from.match_labels());
  for (const auto& expression : from.match_expressions()) {
    auto op = kOps.find(expression.operator_());
    if (op == kOps.end()) {
      return Error(Code::kBadRequest,
                   fmt::format("\"{}\" is not a valid label selector operator", expression.operator_()));
    }
    Requirement requirement{
        expression.key(), op->second, {expression.values().begin(), expression.values().end()}};
    bool needs_values = op->second == Op::kIn || op->second == Op::kNotIn;
    if (needs_values && requirement.values.empty()) {
      return Error(Code::kBadRequest,
                   "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty");
    }
    if (!needs_values && !requirement.values.empty()) {
      return Error(Code::kBadRequest,
                   "values: Invalid value: values set must be empty for exists and does not exist");
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  for (const Requirement& requirement : selector.requirements_) {
    KEELSON_RETURN_IF_ERROR(Validate(requirement));
  }
  Sort(selector.requirements_);
  return selector;
}

LabelSelector LabelSelector::FromMap(const LabelMap& labels) {
  LabelSelector selector;
  for (const auto& [key, value] : labels) selector.requirements_.push_back({key, Op::kIn, {value}});
  Sort(selector.requirements_);
  return selector;
}

LabelSelector LabelSelector::Nothing() {
  LabelSelector selector;
  selector.nothing_ = true;
  return selector;
}

bool LabelSelector::Matches(const LabelMap& labels) const {
  if (nothing_) return false;
  return std::all_of(requirements_.begin(), requirements_.end(),
                     [&](const Requirement& requirement) { return MatchesOne(requirement, labels); });
}

std::string LabelSelector::ToString() const {
  std::string out;
  for (const Requirement& requirement : requirements_) {
    if (!out.empty()) out += ',';
    bool one = requirement.values.size() == 1;
    std::string list = fmt::format("{}", fmt::join(requirement.values, ","));
    switch (requirement.op) {
      case Op::kExists:
        out += requirement.key;
        break;
      case Op::kDoesNotExist:
        out += "!" + requirement.key;
        break;
      case Op::kIn:
        out += requirement.key + (one ? "=" + list : " in (" + list + ")");
        break;
      case Op::kNotIn:
        out += requirement.key + (one ? "!=" + list : " notin (" + list + ")");
        break;
      case Op::kGreaterThan:
        out += requirement.key + ">" + list;
        break;
      case Op::kLessThan:
        out += requirement.key + "<" + list;
        break;
    }
  }
  return out;
}

}  // namespace keelson::api
