#include "controlplane/apiserver/crd/conditions.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/url/parse.hpp>

#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/crypto/certificates.h"

namespace keelson::apiserver {
namespace {

using Names = apiextensionsv1::CustomResourceDefinitionNames;

constexpr std::string_view kApproval = "api-approved.kubernetes.io";

bool Contains(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

struct Verdict {
  std::string value, reason, message;
};

// Accepts a name that the definition already has, or that no other definition of the group uses.
class NameCheck {
 public:
  explicit NameCheck(Verdict& verdict) : verdict_(verdict) {}
  bool Free(const std::string& wanted, const std::string& accepted, const std::vector<std::string>& used,
            const char* reason) {
    if (wanted == accepted || !Contains(used, wanted)) return true;
    verdict_ = {"False", reason, fmt::format("\"{}\" is already in use", wanted)};
    return false;
  }

 private:
  Verdict& verdict_;
};

Names AcceptNames(const Names& wanted, const Names& accepted, const UsedNames& used, Verdict& verdict) {
  Names names = accepted;
  NameCheck check(verdict);
  if (check.Free(wanted.plural(), accepted.plural(), used.resources, "PluralConflict")) {
    names.set_plural(wanted.plural());
  }
  if (check.Free(wanted.singular(), accepted.singular(), used.resources, "SingularConflict")) {
    names.set_singular(wanted.singular());
  }
  const std::vector<std::string> own(accepted.short_names().begin(), accepted.short_names().end());
  std::vector<std::string> taken;
  for (const std::string& name : wanted.short_names()) {
    if (!Contains(own, name) && Contains(used.resources, name)) {
      taken.push_back(fmt::format("\"{}\" is already in use", name));
    }
  }
  if (taken.empty()) {
    *names.mutable_short_names() = wanted.short_names();
  } else {
    verdict = {"False", "ShortNamesConflict", taken.size() == 1 ? taken[0] : "[" + Join(taken, ", ") + "]"};
  }
  if (check.Free(wanted.kind(), accepted.kind(), used.kinds, "KindConflict")) names.set_kind(wanted.kind());
  if (check.Free(wanted.list_kind(), accepted.list_kind(), used.kinds, "ListKindConflict")) {
    names.set_list_kind(wanted.list_kind());
  }
  *names.mutable_categories() = wanted.categories();
  return names;
}

bool HasUsableBundle(const CustomResourceDefinition& definition) {
  const auto& conversion = definition.spec().conversion();
  if (conversion.strategy() != "Webhook") return true;
  const std::string& bundle = conversion.webhook().client_config().ca_bundle();
  return bundle.empty() || crypto::InspectCertificate(bundle).has_value();
}

Verdict Established(const CustomResourceDefinition& definition, bool names_accepted) {
  for (const auto& condition : definition.status().conditions()) {
    if (condition.type() == "Established" && condition.status() == "True") {
      return {"True", condition.reason(), condition.message()};
    }
  }
  if (!names_accepted) return {"False", "NotAccepted", "not all names are accepted"};
  if (!HasUsableBundle(definition)) {
    return {"False", "InvalidCABundle", "The conversion webhook CABundle is invalid"};
  }
  return {"True", "InitialNamesAccepted", "the initial names have been accepted"};
}

// Empty: nothing is wrong.
Verdict NonStructural(const CustomResourceDefinition& definition) {
  for (const auto& version : definition.spec().versions()) {
    if (!version.schema().has_open_apiv3_schema()) continue;
    auto compiled = k8s::StructuralSchema::Compile(version.schema().open_apiv3_schema());
    if (!compiled) return {"True", "Violations", compiled.error().message()};
  }
  return {};
}

bool IsProtected(std::string_view group) {
  return group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
         group.ends_with(".kubernetes.io");
}

Verdict ApprovalOf(const CustomResourceDefinition& definition) {
  constexpr std::string_view kSee = "https://github.com/kubernetes/enhancements/pull/1111";
  const auto& annotations = definition.metadata().annotations();
  auto found = annotations.find(std::string(kApproval));
  const std::string text = found == annotations.end() ? "" : found->second;
  if (text.empty()) {
    return {"False", "MissingAnnotation",
            fmt::format("protected groups must have approval annotation \"{}\", see {}", kApproval, kSee)};
  }
  if (text.starts_with("unapproved")) {
    return {"False", "UnapprovedAnnotation", fmt::format("not approved: \"{}\"", text)};
  }
  auto url = boost::urls::parse_uri(text);
  if (url && url->has_scheme() && !url->host().empty()) {
    return {"True", "ApprovedAnnotation", "approved in " + text};
  }
  return {"False", "InvalidAnnotation",
          fmt::format(
              "protected groups must have approval annotation \"{}\" with either a URL or a reason starting "
              "with \"unapproved\", see {}",
              kApproval, kSee)};
}

void Drop(DefinitionStatus& status, std::string_view type) {
  auto& conditions = *status.mutable_conditions();
  for (int i = conditions.size() - 1; i >= 0; --i) {
    if (conditions[i].type() == type) conditions.DeleteSubrange(i, 1);
  }
}

}  // namespace

UsedNames AcceptedNamesOf(const std::vector<CustomResourceDefinition>& of_group) {
  UsedNames used;
  for (const CustomResourceDefinition& one : of_group) {
    const Names& names = one.status().accepted_names();
    if (names.plural().empty()) continue;
    used.resources.push_back(names.plural());
    used.resources.push_back(names.singular());
    used.resources.insert(used.resources.end(), names.short_names().begin(), names.short_names().end());
    used.kinds.push_back(names.kind());
    used.kinds.push_back(names.list_kind());
  }
  return used;
}

void SetCondition(DefinitionStatus& status, std::string_view type, std::string_view value,
                  std::string_view reason, std::string_view message, int64_t generation, WallTime now) {
  apiextensionsv1::CustomResourceDefinitionCondition* condition = nullptr;
  for (auto& one : *status.mutable_conditions()) {
    if (one.type() == type) condition = &one;
  }
  if (!condition) {
    condition = status.add_conditions();
    condition->set_type(std::string(type));
  }
  if (condition->status() != value) {
    condition->set_status(std::string(value));
    *condition->mutable_last_transition_time() = api::ToTime(now);
  }
  condition->set_reason(std::string(reason));
  condition->set_message(std::string(message));
  if (generation > 0) condition->set_observed_generation(generation);
}

DefinitionStatus StatusOf(const CustomResourceDefinition& definition, const UsedNames& used, WallTime now) {
  DefinitionStatus status = definition.status();
  const int64_t generation = definition.metadata().generation();
  auto set = [&](const char* type, const Verdict& verdict) {
    SetCondition(status, type, verdict.value, verdict.reason, verdict.message, generation, now);
  };
  Verdict names{"True", "NoConflicts", "no conflicts found"};
  *status.mutable_accepted_names() =
      AcceptNames(definition.spec().names(), definition.status().accepted_names(), used, names);
  set("NamesAccepted", names);
  set("Established", Established(definition, names.value == "True"));
  // A look at a large schema takes long, and its result changes with the generation alone.
  if (generation == 0 || status.observed_generation() != generation) {
    const Verdict non_structural = NonStructural(definition);
    if (non_structural.value.empty()) {
      Drop(status, "NonStructuralSchema");
    } else {
      set("NonStructuralSchema", non_structural);
    }
  }
  if (IsProtected(definition.spec().group())) {
    set("KubernetesAPIApprovalPolicyConformant", ApprovalOf(definition));
  }
  if (generation > 0) status.set_observed_generation(generation);
  return status;
}

}  // namespace keelson::apiserver
