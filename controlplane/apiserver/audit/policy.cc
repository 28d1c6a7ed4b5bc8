#include "controlplane/apiserver/audit/policy.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json.hpp>

#include "controlplane/apiserver/request/yaml.h"

namespace keelson::apiserver::audit {
namespace {

namespace json = boost::json;

constexpr std::string_view kLevels[] = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::string_view kStages[] = {"RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

bool Has(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool MatchesPath(std::string_view spec, std::string_view path) {
  if (spec == "*" || spec == path) return true;
  if (spec.empty() || spec.back() != '*') return false;
  spec.remove_suffix(1);
  return path.substr(0, spec.size()) == spec;
}

}  // namespace

std::string_view Name(Level level) { return kLevels[static_cast<size_t>(level)]; }
std::string_view Name(Stage stage) { return kStages[static_cast<size_t>(stage)]; }

// Parses and validates; continues after an error to report all of them.
class PolicyReader {
 public:
  Result<Policy> Read(const json::object& root) {
    OnlyFields(root, "", {"kind", "apiVersion", "metadata", "rules", "omitStages", "omitManagedFields"});
    unsigned omitted = Stages(root, "omitStages");
    std::optional<bool> managed = Bool(root, "", "omitManagedFields");
    Policy policy;
    const json::value* rules = root.if_contains("rules");
    if (rules && rules->is_array()) {
      size_t i = 0;
      for (const json::value& rule : rules->get_array()) {
        std::string path = fmt::format("rules[{}]", i++);
        if (!rule.is_object()) {
          problems_.push_back(path + ": must be an object");
          continue;
        }
        policy.rules_.push_back(ReadRule(rule.get_object(), path));
        Verdict& verdict = policy.rules_.back().verdict;
        verdict.omitted_stages |= omitted;
        if (!Bool(rule.get_object(), path, "omitManagedFields")) {
          verdict.omit_managed_fields = managed.value_or(false);
        }
      }
    }
    if (!problems_.empty()) {
      return Error(Code::kInvalid,
                   problems_.size() == 1 ? problems_[0] : fmt::format("[{}]", fmt::join(problems_, ", ")));
    }
    if (policy.rules_.empty()) return Error(Code::kInvalid, "loaded illegal policy with 0 rules");
    return policy;
  }

 private:
  static std::string Join(const std::string& path, std::string_view field) {
    return path.empty() ? std::string(field) : fmt::format("{}.{}", path, field);
  }

  void OnlyFields(const json::object& object, const std::string& path,
                  std::initializer_list<std::string_view> known) {
    for (const auto& field : object) {
      std::string_view name(field.key().data(), field.key().size());
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        problems_.push_back(fmt::format("strict decoding error: unknown field \"{}\"", Join(path, name)));
      }
    }
  }

  std::vector<std::string> Strings(const json::object& object, const std::string& path,
                                   std::string_view name) {
    std::vector<std::string> out;
    const json::value* list = object.if_contains(name);
    if (!list || list->is_null()) return out;
    bool good = list->is_array();
    for (size_t i = 0; good && i < list->get_array().size(); ++i) {
      const json::value& item = list->get_array()[i];
      good = item.is_string();
      if (good) out.emplace_back(item.get_string());
    }
    if (!good) problems_.push_back(Join(path, name) + ": must be a list of strings");
    return out;
  }

  std::optional<bool> Bool(const json::object& object, const std::string& path, std::string_view name) {
    const json::value* value = object.if_contains(name);
    if (!value || value->is_null()) return std::nullopt;
    if (value->is_bool()) return value->get_bool();
    problems_.push_back(Join(path, name) + ": must be true or false");
    return std::nullopt;
  }

  unsigned Stages(const json::object& object, const std::string& path) {
    size_t dot = path.rfind('.');
    std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
    unsigned out = 0;
    size_t i = 0;
    for (const std::string& stage : Strings(object, parent, "omitStages")) {
      auto found = std::find(std::begin(kStages), std::end(kStages), stage);
      if (found == std::end(kStages)) {
        problems_.push_back(
            fmt::format("{}[{}]: Invalid value: \"{}\": allowed stages are RequestReceived,ResponseStarted,"
                        "ResponseComplete,Panic",
                        path, i, stage));
      } else {
        out |= 1u << (found - std::begin(kStages));
      }
      ++i;
    }
    return out;
  }

  Policy::Rule ReadRule(const json::object& object, const std::string& path) {
    OnlyFields(object, path,
               {"level", "users", "userGroups", "verbs", "resources", "namespaces", "nonResourceURLs",
                "omitStages", "omitManagedFields"});
    Policy::Rule rule;
    const json::value* level = object.if_contains("level");
    std::string_view name = level && level->is_string() ? std::string_view(level->get_string()) : "";
    auto known = std::find(std::begin(kLevels), std::end(kLevels), name);
    if (name.empty()) {
      problems_.push_back(path + ".level: Required value");
    } else if (known == std::end(kLevels)) {
      problems_.push_back(fmt::format(
          "{}.level: Unsupported value: \"{}\": supported values: \"Metadata\", \"None\", \"Request\", "
          "\"RequestResponse\"",
          path, name));
    } else {
      rule.verdict.level = static_cast<Level>(known - std::begin(kLevels));
    }
    rule.verdict.omitted_stages = Stages(object, path + ".omitStages");
    rule.verdict.omit_managed_fields = Bool(object, path, "omitManagedFields").value_or(false);
    rule.users = Strings(object, path, "users");
    rule.groups = Strings(object, path, "userGroups");
    rule.verbs = Strings(object, path, "verbs");
    rule.namespaces = Strings(object, path, "namespaces");
    rule.urls = Strings(object, path, "nonResourceURLs");
    ReadResources(object, path, rule);
    CheckUrls(rule, path);
    return rule;
  }

  void ReadResources(const json::object& object, const std::string& path, Policy::Rule& rule) {
    const json::value* list = object.if_contains("resources");
    if (!list || list->is_null()) return;
    if (!list->is_array()) return problems_.push_back(path + ".resources: must be a list");
    size_t i = 0;
    for (const json::value& item : list->get_array()) {
      std::string at = fmt::format("{}.resources[{}]", path, i++);
      if (!item.is_object()) {
        problems_.push_back(at + ": must be an object");
        continue;
      }
      const json::object& one = item.get_object();
      OnlyFields(one, at, {"group", "resources", "resourceNames"});
      Policy::Resources out;
      if (const json::value* group = one.if_contains("group"); group && group->is_string()) {
        out.group = std::string(group->get_string());
      }
      out.resources = Strings(one, at, "resources");
      out.names = Strings(one, at, "resourceNames");
      if (out.group.find('/') != std::string::npos) {
        // A common mistake: including the version in the group.
        problems_.push_back(
            fmt::format("{}.group: Invalid value: \"{}\": must not contain a version", at, out.group));
      }
      if (!out.names.empty() && out.resources.empty()) {
        problems_.push_back(fmt::format(
            "{}.resourceNames: Invalid value: [\"{}\"]: using resourceNames requires at least one "
            "resource",
            at, fmt::join(out.names, "\",\"")));
      }
      rule.resources.push_back(std::move(out));
    }
  }

  void CheckUrls(const Policy::Rule& rule, const std::string& path) {
    if (rule.urls.empty()) return;
    if (!rule.resources.empty() || !rule.namespaces.empty()) {
      problems_.push_back(fmt::format(
          "{}.nonResourceURLs: Invalid value: [\"{}\"]: rules cannot apply to both regular resources "
          "and non-resource URLs",
          path, fmt::join(rule.urls, "\",\"")));
    }
    for (size_t i = 0; i < rule.urls.size(); ++i) {
      const std::string& url = rule.urls[i];
      if (url == "*") continue;
      std::string_view wrong;
      if (url.empty() || url.front() != '/') {
        wrong = "non-resource URL rules must begin with a '/' character";
      } else if (url.find('*') < url.size() - 1) {
        wrong = "non-resource URL wildcards '*' must be the final character of the rule";
      }
      if (!wrong.empty()) {
        problems_.push_back(
            fmt::format("{}.nonResourceURLs[{}]: Invalid value: \"{}\": {}", path, i, url, wrong));
      }
    }
  }

  std::vector<std::string> problems_;
};

Result<Policy> Policy::Parse(std::string_view text) {
  KEELSON_ASSIGN_OR_RETURN(std::string converted, YamlToJson(text));
  boost::system::error_code error;
  json::value root = json::parse(converted, error);
  if (error || !root.is_object()) return Error(Code::kInvalid, "the file holds no object");
  auto text_of = [&](std::string_view name) {
    const json::value* value = root.get_object().if_contains(name);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
  };
  if (text_of("kind") != "Policy" || text_of("apiVersion") != "audit.k8s.io/v1") {
    return Error(Code::kInvalid, fmt::format("unknown group version field {} {} in policy",
                                             text_of("apiVersion"), text_of("kind")));
  }
  return PolicyReader().Read(root.get_object());
}

Verdict Policy::Evaluate(const User* user, const RequestInfo& request) const {
  for (const Rule& rule : rules_) {
    if (Matches(rule, user, request)) return rule.verdict;
  }
  return {};
}

bool Policy::Matches(const Rule& rule, const User* user, const RequestInfo& request) {
  if (!rule.users.empty() && (!user || !Has(rule.users, user->name))) return false;
  if (!rule.groups.empty()) {
    if (!user) return false;
    bool in_one = std::any_of(user->groups.begin(), user->groups.end(),
                              [&](const std::string& group) { return Has(rule.groups, group); });
    if (!in_one) return false;
  }
  if (!rule.verbs.empty() && !Has(rule.verbs, request.verb)) return false;
  if (!rule.namespaces.empty() || !rule.resources.empty()) return MatchesResource(rule, request);
  if (rule.urls.empty()) return true;
  return !request.is_resource && std::any_of(rule.urls.begin(), rule.urls.end(), [&](const std::string& url) {
    return MatchesPath(url, request.path);
  });
}

bool Policy::MatchesResource(const Rule& rule, const RequestInfo& request) {
  if (!request.is_resource) return false;
  if (!rule.namespaces.empty() && !Has(rule.namespaces, request.ns)) return false;
  if (rule.resources.empty()) return true;
  const std::string full = request.FullResource();
  for (const Resources& one : rule.resources) {
    if (one.group != request.group) continue;
    if (one.resources.empty()) return true;
    if (!one.names.empty() && !Has(one.names, request.name)) continue;
    for (const std::string& resource : one.resources) {
      if (resource == "*" || resource == full) return true;
      if (!request.subresource.empty() && resource == "*/" + request.subresource) return true;
      if (resource == request.resource + "/*") return true;
    }
  }
  return false;
}

}  // namespace keelson::apiserver::audit
