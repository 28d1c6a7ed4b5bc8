#include "controlplane/apiserver/audit/policy.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/component/document_reader.h"

namespace keelson::apiserver::audit {
namespace {

using component::DocumentReader;

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

// Reads the rules of a policy, and reports all that is wrong with them.
class PolicyReader {
 public:
  static void Read(DocumentReader& in, Policy& policy) {
    in.Ignore({"metadata"});
    const unsigned omitted = Stages(in);
    const bool managed = Bool(in, "omitManagedFields").value_or(false);
    in.List("rules",
            [&](DocumentReader& item) { policy.rules_.push_back(ReadRule(item, omitted, managed)); });
  }

 private:
  static std::vector<std::string> Strings(DocumentReader& in, std::string_view field) {
    std::vector<std::string> out;
    in.Read(field, out);
    return out;
  }

  static std::optional<bool> Bool(DocumentReader& in, std::string_view field) {
    if (!in.Has(field)) return std::nullopt;
    bool out = false;
    in.Read(field, out);
    return out;
  }

  static unsigned Stages(DocumentReader& in) {
    unsigned out = 0;
    size_t i = 0;
    for (const std::string& stage : Strings(in, "omitStages")) {
      auto found = std::find(std::begin(kStages), std::end(kStages), stage);
      if (found == std::end(kStages)) {
        in.Problem(fmt::format("omitStages[{}]", i),
                   fmt::format("Invalid value: \"{}\": allowed stages are RequestReceived,ResponseStarted,"
                               "ResponseComplete,Panic",
                               stage));
      } else {
        out |= 1u << (found - std::begin(kStages));
      }
      ++i;
    }
    return out;
  }

  static Level ReadLevel(DocumentReader& in) {
    std::string name;
    in.Read("level", name);
    auto known = std::find(std::begin(kLevels), std::end(kLevels), name);
    if (name.empty()) {
      in.Problem("level", "Required value");
    } else if (known == std::end(kLevels)) {
      in.Problem("level", fmt::format("Unsupported value: \"{}\": supported values: \"Metadata\", \"None\", "
                                      "\"Request\", \"RequestResponse\"",
                                      name));
    } else {
      return static_cast<Level>(known - std::begin(kLevels));
    }
    return Level::kNone;
  }

  // `omitted` stages and `managed` fields are the policy's.
  static Policy::Rule ReadRule(DocumentReader& in, unsigned omitted, bool managed) {
    Policy::Rule rule;
    rule.verdict.level = ReadLevel(in);
    rule.verdict.omitted_stages = omitted | Stages(in);
    rule.verdict.omit_managed_fields = Bool(in, "omitManagedFields").value_or(managed);
    rule.users = Strings(in, "users");
    rule.groups = Strings(in, "userGroups");
    rule.verbs = Strings(in, "verbs");
    rule.namespaces = Strings(in, "namespaces");
    rule.urls = Strings(in, "nonResourceURLs");
    in.List("resources", [&](DocumentReader& item) { rule.resources.push_back(ReadResources(item)); });
    CheckUrls(in, rule);
    return rule;
  }

  static Policy::Resources ReadResources(DocumentReader& in) {
    Policy::Resources out;
    in.Read("group", out.group);
    out.resources = Strings(in, "resources");
    out.names = Strings(in, "resourceNames");
    if (out.group.find('/') != std::string::npos) {
      // A common mistake: including the version in the group.
      in.Problem("group", fmt::format("Invalid value: \"{}\": must not contain a version", out.group));
    }
    if (!out.names.empty() && out.resources.empty()) {
      in.Problem("resourceNames",
                 fmt::format("Invalid value: [\"{}\"]: using resourceNames requires at least one resource",
                             fmt::join(out.names, "\",\"")));
    }
    return out;
  }

  static void CheckUrls(DocumentReader& in, const Policy::Rule& rule) {
    if (rule.urls.empty()) return;
    if (!rule.resources.empty() || !rule.namespaces.empty()) {
      in.Problem("nonResourceURLs",
                 fmt::format("Invalid value: [\"{}\"]: rules cannot apply to both regular resources "
                             "and non-resource URLs",
                             fmt::join(rule.urls, "\",\"")));
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
        in.Problem(fmt::format("nonResourceURLs[{}]", i),
                   fmt::format("Invalid value: \"{}\": {}", url, wrong));
      }
    }
  }
};

Result<Policy> Policy::Parse(std::string_view text) {
  component::DocumentProblems problems;
  problems.words = component::TypeWords::kMustBe;
  KEELSON_ASSIGN_OR_RETURN(const boost::json::object document, component::ParseDocument(text, problems));
  Policy policy;
  {
    DocumentReader in(document, problems);
    std::string kind, version;
    in.Read("kind", kind);
    in.Read("apiVersion", version);
    if (kind != "Policy" || version != "audit.k8s.io/v1") {
      return Error(Code::kInvalid, fmt::format("unknown group version field {} {} in policy", version, kind));
    }
    PolicyReader::Read(in, policy);
  }
  KEELSON_RETURN_IF_ERROR(component::RefuseAggregate(problems));
  if (policy.rules_.empty()) return Error(Code::kInvalid, "loaded illegal policy with 0 rules");
  return policy;
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
