#include "controlplane/apiserver/handlers/yaml.h"

#include <cmath>
#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>
#include <boost/json.hpp>

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr int kMaxDepth = 200;  // aliases may nest without end
// A body of 3 MB has fewer; aliases of aliases could make any number of them.
constexpr size_t kMaxNodes = 4u << 20;

bool IsDecimal(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

json::value PlainScalar(const std::string& text) {
  static const std::set<std::string, std::less<>> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                           "YES",  "on",   "On",   "ON"};
  static const std::set<std::string, std::less<>> kFalse = {"false", "False", "FALSE", "no", "No",
                                                            "NO",    "off",   "Off",   "OFF"};
  static const std::set<std::string, std::less<>> kNull = {"", "~", "null", "Null", "NULL"};
  if (kNull.count(text)) return nullptr;
  if (kTrue.count(text)) return true;
  if (kFalse.count(text)) return false;
  char* end = nullptr;
  if (IsDecimal(text)) {
    errno = 0;
    int64_t number = std::strtoll(text.c_str(), &end, 10);
    if (errno == 0 && !(text.size() > 1 && text[0] == '0')) return number;
    if (text.size() > 1 && text[0] == '0')
      return static_cast<int64_t>(std::strtoll(text.c_str(), nullptr, 8));
  }
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
    int64_t number = std::strtoll(text.c_str() + 2, &end, text[1] == 'x' ? 16 : 8);
    if (*end == '\0') return number;
  }
  if (text.find_first_not_of("0123456789+-.eE") == std::string::npos &&
      text.find_first_of("0123456789") != std::string::npos) {
    double number = std::strtod(text.c_str(), &end);
    if (*end == '\0' && std::isfinite(number)) return number;
  }
  return json::value(text);
}

class Converter {
 public:
  Result<json::value> Convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth) return Error(Code::kBadRequest, "yaml: document is nested too deeply");
    if (++nodes_ > kMaxNodes) return Error(Code::kBadRequest, "yaml: document contains excessive aliasing");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return json::value(nullptr);
      case YAML::NodeType::Scalar:
        // "?" marks a plain scalar; quoted ones ("!") are strings whatever they look like.
        if (node.Tag() == "?" || node.Tag().empty()) return PlainScalar(node.Scalar());
        return json::value(node.Scalar());
      case YAML::NodeType::Sequence: {
        json::array out;
        for (const YAML::Node& item : node) {
          ASSIGN_OR_RETURN(json::value value, Convert(item, depth + 1));
          out.push_back(std::move(value));
        }
        return json::value(std::move(out));
      }
      case YAML::NodeType::Map:
        break;
    }
    json::object out;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(Code::kBadRequest, "yaml: map keys must be scalars");
      const std::string& key = entry.first.Scalar();
      if (out.contains(key)) {
        repeated_ +=
            fmt::format("\n  line {}: key \"{}\" already set in map", entry.first.Mark().line + 1, key);
      }
      ASSIGN_OR_RETURN(json::value value, Convert(entry.second, depth + 1));
      out[key] = std::move(value);
    }
    return json::value(std::move(out));
  }

  const std::string& repeated() const { return repeated_; }

 private:
  size_t nodes_ = 0;
  std::string repeated_;
};

}  // namespace

Result<std::string> YamlToJson(std::string_view yaml, std::vector<std::string>* problems) {
  try {
    Converter converter;
    ASSIGN_OR_RETURN(json::value value, converter.Convert(YAML::Load(std::string(yaml)), 0));
    if (problems && !converter.repeated().empty())
      problems->push_back("yaml: unmarshal errors:" + converter.repeated());
    return json::serialize(value);
  } catch (const YAML::Exception& error) {
    return Error(Code::kBadRequest, std::string("error converting YAML to JSON: ") + error.what());
  }
}

}  // namespace keelson::apiserver
