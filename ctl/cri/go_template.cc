#include "ctl/cri/go_template.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <vector>

#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

using Json = boost::json::value;

// A piece of text, or what stands between {{ and }}.
struct Token {
  bool action = false;
  std::string text;
};

Result<std::vector<Token>> Tokens(std::string_view text) {
  std::vector<Token> out;
  bool trim = false;
  while (!text.empty()) {
    const size_t open = text.find("{{");
    std::string_view plain = text.substr(0, open);
    text.remove_prefix(plain.size());
    if (trim) plain = TrimLeft(plain);
    if (text.empty()) {
      out.push_back({false, std::string(plain)});
      break;
    }
    const size_t close = text.find("}}");
    if (close == std::string_view::npos) return Error(Code::kInvalid, "template: unclosed action");
    std::string_view action = text.substr(2, close - 2);
    text.remove_prefix(close + 2);
    if (action.starts_with("- ")) {
      action.remove_prefix(2);
      plain = TrimRight(plain);
    }
    trim = action.ends_with(" -");
    if (trim) action.remove_suffix(2);
    if (!plain.empty()) out.push_back({false, std::string(plain)});
    out.push_back({true, std::string(Trim(action))});
  }
  return out;
}

bool Truth(const Json* found) {
  if (!found || found->is_null()) return false;
  if (found->is_bool()) return found->get_bool();
  if (const auto* text = found->if_string()) return !text->empty();
  if (const auto* list = found->if_array()) return !list->empty();
  if (const auto* map = found->if_object()) return !map->empty();
  return found->to_number<double>() != 0;
}

class Template {
 public:
  explicit Template(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<std::string> Run(const Json& document) {
    KEELSON_RETURN_IF_ERROR(Block(&document, true));
    if (at_ < tokens_.size()) return Unexpected(tokens_[at_].text);
    return out_;
  }

 private:
  static Error Unexpected(const std::string& action) {
    return Error(Code::kInvalid, "template: unexpected {{" + action + "}}");
  }
  static Error Unsupported(const std::string& action) {
    return Error(Code::kInvalid,
                 "template: {{" + action + "}} is more than fields, json, if and range, which nodectl knows");
  }

  // To the {{else}} or {{end}} that closes the block. Without `live` nothing is printed.
  Result<> Block(const Json* dot, bool live) {
    for (; at_ < tokens_.size(); ++at_) {
      const Token& token = tokens_[at_];
      if (!token.action) {
        if (live) out_ += token.text;
        continue;
      }
      if (token.text == "end" || token.text == "else") return {};
      if (token.text.empty() || token.text.starts_with("/*")) continue;
      const auto words = SplitWords(token.text);
      if (words[0] == "if" || words[0] == "range") {
        if (words.size() != 2) return Unsupported(token.text);
        KEELSON_RETURN_IF_ERROR(Branch(words[0] == "range", std::string(words[1]), dot, live));
      } else {
        KEELSON_RETURN_IF_ERROR(Print(token.text, words, dot, live));
      }
    }
    return {};
  }

  // Leaves at_ on the {{end}}.
  Result<> Branch(bool range, const std::string& path, const Json* dot, bool live) {
    KEELSON_ASSIGN_OR_RETURN(const Json* chosen, Find(path, dot));
    const std::vector<const Json*> rounds = Rounds(range, chosen, dot);
    const size_t body = ++at_;
    for (size_t i = 0; i < std::max<size_t>(rounds.size(), 1); ++i) {
      at_ = body;
      KEELSON_RETURN_IF_ERROR(Block(rounds.empty() ? nullptr : rounds[i], live && !rounds.empty()));
    }
    if (at_ < tokens_.size() && tokens_[at_].text == "else") {
      ++at_;
      KEELSON_RETURN_IF_ERROR(Block(dot, live && rounds.empty()));
    }
    if (at_ >= tokens_.size()) return Error(Code::kInvalid, "template: unexpected EOF");
    if (tokens_[at_].text != "end") return Unexpected(tokens_[at_].text);
    return {};
  }

  // What "." is in each round of the body.
  static std::vector<const Json*> Rounds(bool range, const Json* chosen, const Json* dot) {
    std::vector<const Json*> rounds;
    if (!range) {
      if (Truth(chosen)) rounds.push_back(dot);
    } else if (const auto* list = chosen ? chosen->if_array() : nullptr) {
      for (const Json& item : *list) rounds.push_back(&item);
    } else if (const auto* map = chosen ? chosen->if_object() : nullptr) {
      std::map<std::string, const Json*> sorted;
      for (const auto& member : *map) sorted.emplace(std::string(member.key()), &member.value());
      for (const auto& [key, item] : sorted) rounds.push_back(item);
    }
    return rounds;
  }

  Result<> Print(const std::string& action, const std::vector<std::string_view>& words, const Json* dot,
                 bool live) {
    const bool json = words.size() == 2 && words[0] == "json";
    if (!json && words.size() != 1) return Unsupported(action);
    KEELSON_ASSIGN_OR_RETURN(const Json* found, Find(std::string(words.back()), dot));
    if (!live) return {};
    if (json) {
      out_ += found ? boost::json::serialize(*found) : "null";
    } else if (!found || found->is_null()) {
      out_ += "<no value>";
    } else if (const auto* text = found->if_string()) {
      out_.append(text->data(), text->size());
    } else if (found->is_object() || found->is_array()) {
      return Error(Code::kInvalid, "template: {{" + action + "}} is a list or a map: use json or range");
    } else {
      out_ += boost::json::serialize(*found);
    }
    return {};
  }

  // Null: absent. kInvalid: not a path of fields.
  static Result<const Json*> Find(const std::string& path, const Json* dot) {
    if (path == ".") return dot;
    if (!path.starts_with(".") || path.find_first_of("$|()\"`") != std::string::npos) {
      return Unsupported(path);
    }
    for (const std::string_view name : Split(std::string_view(path).substr(1), '.')) {
      if (name.empty()) return Unsupported(path);
      const auto* object = dot ? dot->if_object() : nullptr;
      dot = object ? object->if_contains({name.data(), name.size()}) : nullptr;
    }
    return dot;
  }

  const std::vector<Token> tokens_;
  size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> ExecuteGoTemplate(const std::string& text, const Json& document) {
  if (text.empty()) return Error(Code::kInvalid, "template is not set: use --template");
  KEELSON_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokens(text));
  return Template(std::move(tokens)).Run(document);
}

}  // namespace keelson::ctl
