// FlowSchemas and PriorityLevelConfigurations.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace flowcontrolv1 = api::flowcontrol::v1;

namespace {

constexpr int32_t kMaxPrecedence = 10000, kMaxQueues = 10 * 1000 * 1000;
constexpr int kMaxHashBits = 60;
const std::vector<std::string_view> kVerbs = {"create", "delete", "deletecollection", "get",  "list",
                                              "patch",  "proxy",  "update",           "watch"};

// The two FlowSchemas that every cluster has and that cannot be changed.
constexpr char kEverything[] =
    R"("resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,)"
    R"("namespaces":["*"]}],"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}]}])";
constexpr char kExemptSchema[] =
    R"({"priorityLevelConfiguration":{"name":"exempt"},"matchingPrecedence":1,"rules":[)"
    R"({"subjects":[{"kind":"Group","group":{"name":"system:masters"}}],)";
constexpr char kCatchAllSchema[] =
    R"({"priorityLevelConfiguration":{"name":"catch-all"},"matchingPrecedence":10000,)"
    R"("distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[)"
    R"({"kind":"Group","group":{"name":"system:unauthenticated"}},)"
    R"({"kind":"Group","group":{"name":"system:authenticated"}}],)";
constexpr char kCatchAllLevel[] =
    R"({"type":"Limited","limited":{"nominalConcurrencyShares":5,"lendablePercent":0,)"
    R"("limitResponse":{"type":"Reject"}}})";

template <typename Spec>
bool Equals(const Spec& spec, const std::string& json) {
  Spec fixed;
  return api::DecodeJson(json, fixed) && SameMessage(spec, fixed);
}

void CheckNamed(bool set, const std::string& name, std::string_view what, std::string_view kind,
                const Path& path, FieldErrors& errors) {
  if (!set) {
    errors.push_back(Required(path, fmt::format("{} is required when subject kind is '{}'", what, kind)));
  } else if (name.empty()) {
    errors.push_back(Required(path.Child("name")));
  }
}

void CheckAccount(const flowcontrolv1::Subject& subject, const Path& path, FieldErrors& errors) {
  CheckNamed(subject.has_service_account(), subject.service_account().name(), "serviceAccount",
             "ServiceAccount", path, errors);
  if (!subject.has_service_account()) return;
  const flowcontrolv1::ServiceAccountSubject& account = subject.service_account();
  if (!account.name().empty() && account.name() != "*") {
    AddProblems(CheckDns1123Subdomain(account.name()), account.name(), path.Child("name"), errors);
  }
  if (account.namespace_().empty()) {
    errors.push_back(Required(path.Child("namespace"), "must specify namespace for service account"));
  } else {
    AddProblems(CheckDns1123Label(account.namespace_()), account.namespace_(), path.Child("namespace"),
                errors);
  }
}

void CheckSubject(const flowcontrolv1::Subject& subject, const Path& path, FieldErrors& errors) {
  const std::string& kind = subject.kind();
  const Path user = path.Child("user"), group = path.Child("group"), account = path.Child("serviceAccount");
  if (kind == "ServiceAccount") {
    CheckAccount(subject, account, errors);
  } else if (kind == "User") {
    CheckNamed(subject.has_user(), subject.user().name(), "user", kind, user, errors);
  } else if (kind == "Group") {
    CheckNamed(subject.has_group(), subject.group().name(), "group", kind, group, errors);
  } else {
    errors.push_back(NotSupported(path.Child("kind"), kind, {"Group", "ServiceAccount", "User"}));
    return;
  }
  const auto forbid = [&](bool set, const Path& place, const char* field, const char* owner) {
    if (!set || kind == owner) return;
    errors.push_back(
        Forbidden(place, fmt::format("{} is forbidden when subject kind is not '{}'", field, owner)));
  };
  forbid(subject.has_service_account(), account, "serviceAccount", "ServiceAccount");
  forbid(subject.has_user(), user, "user", "User");
  forbid(subject.has_group(), group, "group", "Group");
}

void CheckVerbs(const Strings& verbs, const Path& path, FieldErrors& errors) {
  if (verbs.empty()) {
    errors.push_back(Required(path, "verbs must contain at least one value"));
  } else if (Contains(verbs, "*")) {
    CheckLoneWildcard(verbs, "verbs", path, errors);
  } else if (!std::all_of(verbs.begin(), verbs.end(), [](const std::string& verb) {
               return std::find(kVerbs.begin(), kVerbs.end(), verb) != kVerbs.end();
             })) {
    FieldError error = NotSupported(path, "", kVerbs);
    error.value = PrintStrings(verbs);
    errors.push_back(std::move(error));
  }
}

void CheckUrl(const std::string& url, const Path& path, FieldErrors& errors) {
  const size_t star = url.find('*');
  const bool suffix = star == std::string::npos || (star + 1 == url.size() && url.ends_with("/*"));
  const char* problem = url.empty()                           ? "must not be empty"
                        : url == "/"                          ? nullptr
                        : url[0] != '/'                       ? "must start with slash"
                        : url.find(' ') != std::string::npos  ? "must not contain white-space"
                        : url.find("//") != std::string::npos ? "must not contain double slash"
                        : !suffix                             ? "wildcard can only do suffix matching"
                                                              : nullptr;
  if (problem) errors.push_back(Invalid(path, url, problem));
}

void CheckNonResourceRule(const flowcontrolv1::NonResourcePolicyRule& rule, const Path& path,
                          FieldErrors& errors) {
  CheckVerbs(rule.verbs(), path.Child("verbs"), errors);
  const Path urls = path.Child("nonResourceURLs");
  if (rule.non_resource_urls().empty()) {
    errors.push_back(Required(urls, "nonResourceURLs must contain at least one value"));
  } else if (Contains(rule.non_resource_urls(), "*")) {
    CheckLoneWildcard(rule.non_resource_urls(), "non-resource URLs", urls, errors);
  } else {
    for (int i = 0; i < rule.non_resource_urls_size(); ++i) {
      CheckUrl(rule.non_resource_urls(i), urls.Index(i), errors);
    }
  }
}

void CheckResourceRule(const flowcontrolv1::ResourcePolicyRule& rule, const Path& path, FieldErrors& errors) {
  CheckVerbs(rule.verbs(), path.Child("verbs"), errors);
  const Path groups = path.Child("apiGroups"), resources = path.Child("resources"),
             namespaces = path.Child("namespaces");
  if (rule.api_groups().empty()) {
    errors.push_back(Required(groups, "resource rules must supply at least one api group"));
  }
  CheckLoneWildcard(rule.api_groups(), "api groups", groups, errors);
  if (rule.resources().empty()) {
    errors.push_back(Required(resources, "resource rules must supply at least one resource"));
  }
  CheckLoneWildcard(rule.resources(), "resources", resources, errors);
  if (rule.namespaces().empty() && !rule.cluster_scope()) {
    errors.push_back(Required(
        namespaces, "resource rules that are not cluster scoped must supply at least one namespace"));
  } else if (Contains(rule.namespaces(), "*")) {
    CheckLoneWildcard(rule.namespaces(), "namespaces", namespaces, errors);
  } else {
    for (int i = 0; i < rule.namespaces_size(); ++i) {
      for (const std::string& problem : CheckDns1123Label(rule.namespaces(i))) {
        errors.push_back(Invalid(namespaces.Index(i), rule.namespaces(i),
                                 "each member of this list must be '*' or a DNS-1123 label; " + problem));
      }
    }
  }
}

void CheckRules(const flowcontrolv1::PolicyRulesWithSubjects& rules, const Path& path, FieldErrors& errors) {
  const Path subjects = path.Child("subjects"), resource = path.Child("resourceRules"),
             non_resource = path.Child("nonResourceRules");
  if (rules.subjects().empty()) {
    errors.push_back(Required(subjects, "subjects must contain at least one value"));
  }
  for (int i = 0; i < rules.subjects_size(); ++i) CheckSubject(rules.subjects(i), subjects.Index(i), errors);
  if (rules.resource_rules().empty() && rules.non_resource_rules().empty()) {
    errors.push_back(
        Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"));
  }
  for (int i = 0; i < rules.resource_rules_size(); ++i) {
    CheckResourceRule(rules.resource_rules(i), resource.Index(i), errors);
  }
  for (int i = 0; i < rules.non_resource_rules_size(); ++i) {
    CheckNonResourceRule(rules.non_resource_rules(i), non_resource.Index(i), errors);
  }
}

void CheckPrecedence(const flowcontrolv1::FlowSchema& object, const Path& path, FieldErrors& errors) {
  const int32_t precedence = object.spec().matching_precedence();
  const auto invalid = [&](std::string_view detail) {
    errors.push_back(Invalid(path, int64_t{precedence}, detail));
  };
  if (precedence <= 0) invalid("must be a positive value");
  if (precedence > kMaxPrecedence) invalid(fmt::format("must not be greater than {}", kMaxPrecedence));
  if (precedence == 1 && object.metadata().name() != "exempt") {
    invalid("only the schema named 'exempt' may have matchingPrecedence 1");
  }
}

template <typename Kind>
void CheckFlowConditions(const Kind& object, const Kind&, FieldErrors& errors) {
  const Path status("status");
  const Path list = status.Child("conditions");
  std::set<std::string_view> seen;
  for (int i = 0; i < object.status().conditions_size(); ++i) {
    const std::string& type = object.status().conditions(i).type();
    const Path item = list.Index(i);
    if (!seen.insert(type).second) errors.push_back(Duplicate(item.Child("type"), type));
    if (type.empty()) errors.push_back(Required(item.Child("type"), "must not be empty"));
  }
}

void CheckFlowSchema(const flowcontrolv1::FlowSchema& object, FieldErrors& errors) {
  const Path path("spec");
  const flowcontrolv1::FlowSchemaSpec& spec = object.spec();
  CheckPrecedence(object, path.Child("matchingPrecedence"), errors);
  if (spec.has_distinguisher_method() && spec.distinguisher_method().type() != "ByNamespace" &&
      spec.distinguisher_method().type() != "ByUser") {
    FieldError error =
        NotSupported(path.Child("distinguisherMethod").Child("type"), "", {"ByNamespace", "ByUser"});
    error.value = api::EncodeJson(spec.distinguisher_method());
    errors.push_back(std::move(error));
  }
  const Path level = path.Child("priorityLevelConfiguration");
  const std::string& level_name = spec.priority_level_configuration().name();
  if (level_name.empty()) {
    errors.push_back(Required(level.Child("name"), "must reference a priority level"));
  } else {
    AddProblems(CheckDns1123Subdomain(level_name), level_name, level.Child("name"), errors);
  }
  const Path rules = path.Child("rules");
  for (int i = 0; i < spec.rules_size(); ++i) CheckRules(spec.rules(i), rules.Index(i), errors);
  const std::string& name = object.metadata().name();
  if ((name == "exempt" && !Equals(spec, std::string(kExemptSchema) + kEverything + "}")) ||
      (name == "catch-all" && !Equals(spec, std::string(kCatchAllSchema) + kEverything + "}"))) {
    errors.push_back(
        InvalidInternal(path, spec, fmt::format("spec of '{}' must equal the fixed value", name)));
  }
  CheckFlowConditions(object, object, errors);
}

// The number of bits that distinguish all hands that can be dealt from the queues.
int EntropyBits(int queues, int hand) {
  double bits = 0;
  for (int i = 0; i < hand; ++i) bits += std::log2(static_cast<double>(queues - i));
  return static_cast<int>(std::ceil(bits));
}

void CheckQueuing(const flowcontrolv1::QueuingConfiguration& queuing, const Path& path, FieldErrors& errors) {
  const auto invalid = [&](const char* field, int32_t value, std::string_view detail) {
    errors.push_back(Invalid(path.Child(field), int64_t{value}, detail));
  };
  if (queuing.queue_length_limit() <= 0) {
    invalid("queueLengthLimit", queuing.queue_length_limit(), "must be positive");
  }
  if (queuing.queues() <= 0) {
    invalid("queues", queuing.queues(), "must be positive");
  } else if (queuing.queues() > kMaxQueues) {
    invalid("queues", queuing.queues(), fmt::format("must not be greater than {}", kMaxQueues));
  }
  const int32_t hand = queuing.hand_size(), queues = queuing.queues();
  if (hand <= 0) {
    invalid("handSize", hand, "must be positive");
  } else if (hand > queues) {
    invalid("handSize", hand, fmt::format("should not be greater than queues ({})", queues));
  } else if (EntropyBits(queues, hand) > kMaxHashBits) {
    invalid("handSize", hand,
            fmt::format("required entropy bits of deckSize {} and handSize {} should not be greater than {}",
                        queues, hand, kMaxHashBits));
  }
}

template <typename Level>
void CheckShares(const Level& level, const Path& path, FieldErrors& errors) {
  if (level.nominal_concurrency_shares() < 0) {
    errors.push_back(Invalid(path.Child("nominalConcurrencyShares"),
                             int64_t{level.nominal_concurrency_shares()}, "must be a non-negative integer"));
  }
  if (level.has_lendable_percent()) {
    CheckRange(level.lendable_percent(), 0, 100, path.Child("lendablePercent"), errors);
  }
}

void CheckLimited(const flowcontrolv1::LimitedPriorityLevelConfiguration& limited, const Path& path,
                  FieldErrors& errors) {
  if (limited.nominal_concurrency_shares() < 0) {
    errors.push_back(Invalid(path.Child("nominalConcurrencyShares"),
                             int64_t{limited.nominal_concurrency_shares()},
                             "must be a non-negative integer"));
  }
  const Path response = path.Child("limitResponse");
  const Path queuing = response.Child("queuing");
  const flowcontrolv1::LimitResponse& limit = limited.limit_response();
  if (limit.type() == "Reject") {
    if (limit.has_queuing()) {
      errors.push_back(Forbidden(queuing, "must be nil if limited.limitResponse.type is not Limited"));
    }
  } else if (limit.type() == "Queue") {
    if (!limit.has_queuing()) {
      errors.push_back(Required(queuing, "must not be empty if limited.limitResponse.type is Limited"));
    } else {
      CheckQueuing(limit.queuing(), queuing, errors);
    }
  } else {
    errors.push_back(NotSupported(response.Child("type"), limit.type(), {"Queue", "Reject"}));
  }
  if (limited.has_lendable_percent()) {
    CheckRange(limited.lendable_percent(), 0, 100, path.Child("lendablePercent"), errors);
  }
  if (limited.has_borrowing_limit_percent() && limited.borrowing_limit_percent() < 0) {
    errors.push_back(Invalid(path.Child("borrowingLimitPercent"), int64_t{limited.borrowing_limit_percent()},
                             "if specified, must be a non-negative integer"));
  }
}

void CheckPriorityLevel(const flowcontrolv1::PriorityLevelConfiguration& object, FieldErrors& errors) {
  const Path path("spec");
  const flowcontrolv1::PriorityLevelConfigurationSpec& spec = object.spec();
  const std::string& name = object.metadata().name();
  const Path limited = path.Child("limited"), exempt = path.Child("exempt");
  if ((name == "exempt") != (spec.type() == "Exempt")) {
    errors.push_back(
        Invalid(path.Child("type"), spec.type(), "type must be 'Exempt' if and only if name is 'exempt'"));
  }
  if (spec.type() == "Exempt") {
    if (spec.has_limited()) errors.push_back(Forbidden(limited, "must be nil if the type is not Limited"));
    if (spec.has_exempt()) CheckShares(spec.exempt(), exempt, errors);
  } else if (spec.type() == "Limited") {
    if (spec.has_exempt()) errors.push_back(Forbidden(exempt, "must be nil if the type is Limited"));
    if (!spec.has_limited()) {
      errors.push_back(Required(limited, "must not be empty when type is Limited"));
    } else {
      CheckLimited(spec.limited(), limited, errors);
    }
  } else {
    errors.push_back(NotSupported(path.Child("type"), spec.type(), {"Exempt", "Limited"}));
  }
  if (name == "catch-all" && !Equals(spec, kCatchAllLevel)) {
    errors.push_back(InvalidInternal(path, spec, "spec of 'catch-all' must equal the fixed value"));
  }
  CheckFlowConditions(object, object, errors);
}

}  // namespace

void RegisterFlowControlRules(RuleTable& table) {
  using flowcontrolv1::FlowSchema;
  using flowcontrolv1::PriorityLevelConfiguration;
  table.Add<FlowSchema, CheckFlowSchema>();
  table.AddStatus<FlowSchema, CheckFlowConditions<FlowSchema>>();
  table.Add<PriorityLevelConfiguration, CheckPriorityLevel>();
  table.AddStatus<PriorityLevelConfiguration, CheckFlowConditions<PriorityLevelConfiguration>>();
}

}  // namespace keelson::k8s
