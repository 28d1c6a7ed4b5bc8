// CustomResourceDefinitions.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/codec.h"
#include "lib/k8s/rule_table.h"
#include "lib/k8s/validate_parts.h"
#include "lib/k8s/validate_schema.h"

namespace keelson::k8s {

namespace apiextensionsv1 = api::apiextensions::v1;

namespace {

using Definition = apiextensionsv1::CustomResourceDefinition;
using Spec = apiextensionsv1::CustomResourceDefinitionSpec;
using Version = apiextensionsv1::CustomResourceDefinitionVersion;

constexpr int32_t kHttps = 443;
constexpr char kColumnTypes[] = "must be one of boolean,date,integer,number,string";
constexpr char kFormats[] =
    "must be one of bsonobjectid,byte,cidr,creditcard,date,datetime,duration,email,hexcolor,hostname,int32,"
    "int64,ipv4,ipv6,isbn,isbn10,isbn13,mac,password,rgbcolor,ssn,uri,uuid,uuid3,uuid4,uuid5";

void Label(const std::string& value, const Path& path, FieldErrors& errors) {
  if (const Problems problems = CheckDns1035Label(value); !problems.empty()) {
    errors.push_back(Invalid(path, value, Join(problems, ",")));
  }
}

void MixedCase(const std::string& value, const Path& path, FieldErrors& errors) {
  if (const Problems problems = CheckDns1035Label(Lower(value)); !problems.empty()) {
    errors.push_back(
        Invalid(path, value, "may have mixed case, but should otherwise match: " + Join(problems, ",")));
  }
}

void CheckNames(const apiextensionsv1::CustomResourceDefinitionNames& names, bool required, const Path& path,
                FieldErrors& errors) {
  const std::pair<const char*, const std::string&> four[] = {{"plural", names.plural()},
                                                             {"singular", names.singular()},
                                                             {"kind", names.kind()},
                                                             {"listKind", names.list_kind()}};
  for (const auto& [field, value] : four) {
    if (required && value.empty()) errors.push_back(Required(path.Child(field)));
  }
  if (!names.plural().empty()) Label(names.plural(), path.Child("plural"), errors);
  if (!names.singular().empty()) Label(names.singular(), path.Child("singular"), errors);
  if (!names.kind().empty()) MixedCase(names.kind(), path.Child("kind"), errors);
  if (!names.list_kind().empty()) MixedCase(names.list_kind(), path.Child("listKind"), errors);
  const Path short_names = path.Child("shortNames"), categories = path.Child("categories");
  for (int i = 0; i < names.short_names_size(); ++i)
    Label(names.short_names(i), short_names.Index(i), errors);
  if (!names.kind().empty() && names.kind() == names.list_kind()) {
    errors.push_back(
        Invalid(path.Child("listKind"), names.list_kind(), "kind and listKind may not be the same"));
  }
  for (int i = 0; i < names.categories_size(); ++i) Label(names.categories(i), categories.Index(i), errors);
}

void CheckGroup(const std::string& group, const Path& path, FieldErrors& errors) {
  if (group.empty()) {
    errors.push_back(Required(path));
  } else if (const Problems problems = CheckDns1123Subdomain(group); !problems.empty()) {
    errors.push_back(Invalid(path, group, Join(problems, ",")));
  } else if (group.find('.') == std::string::npos) {
    errors.push_back(Invalid(path, group, "should be a domain with at least one dot"));
  }
}

void CheckJsonPath(const std::string& value, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    errors.push_back(Required(path));
  } else if (value.front() != '.') {
    errors.push_back(Invalid(path, value,
                             "is an invalid json path: unrecognized character in action: U+" +
                                 fmt::format("{:04X} '{}'", value.front(), value.front())));
  }
}

void CheckColumn(const apiextensionsv1::CustomResourceColumnDefinition& column, const Path& path,
                 FieldErrors& errors) {
  constexpr std::string_view kTypes[] = {"boolean", "date", "integer", "number", "string"};
  constexpr std::string_view kKnown = kFormats;
  if (column.name().empty()) errors.push_back(Required(path.Child("name")));
  if (column.type().empty()) {
    errors.push_back(Required(path.Child("type"), kColumnTypes));
  } else if (std::find(std::begin(kTypes), std::end(kTypes), column.type()) == std::end(kTypes)) {
    errors.push_back(Invalid(path.Child("type"), column.type(), kColumnTypes));
  }
  if (!column.format().empty()) {
    const auto known = SplitText(kKnown.substr(kKnown.rfind(' ') + 1), ',');
    if (std::find(known.begin(), known.end(), column.format()) == known.end()) {
      errors.push_back(Invalid(path.Child("format"), column.format(), kFormats));
    }
  }
  CheckJsonPath(column.json_path(), path.Child("jsonPath"), errors);
}

void CheckScalePath(const std::string& value, const char* prefix, const char* place, bool required,
                    const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    if (required) errors.push_back(Required(path));
  } else if (!value.starts_with(prefix)) {
    errors.push_back(Invalid(path, value, fmt::format("should be a json path under {}", place)));
  }
}

void CheckSubresources(const apiextensionsv1::CustomResourceSubresources& subresources, const Path& path,
                       FieldErrors& errors) {
  if (!subresources.has_scale()) return;
  const apiextensionsv1::CustomResourceSubresourceScale& scale = subresources.scale();
  CheckScalePath(scale.spec_replicas_path(), ".spec.", ".spec", true, path.Child("scale.specReplicasPath"),
                 errors);
  CheckScalePath(scale.status_replicas_path(), ".status.", ".status", true,
                 path.Child("scale.statusReplicasPath"), errors);
  const std::string& selector = scale.label_selector_path();
  if (!selector.empty() && !selector.starts_with(".spec.") && !selector.starts_with(".status.")) {
    errors.push_back(Invalid(path.Child("scale.labelSelectorPath"), selector,
                             "should be a json path under either .status or .spec"));
  }
}

// What all versions agree on is judged once, at the place that it had before there were versions.
template <typename Get>
bool AllEqual(const Spec& spec, const Get& get) {
  for (const Version& version : spec.versions()) {
    if (!SameMessage(get(version), get(spec.versions(0)))) return false;
  }
  return true;
}

void CheckSchemas(const Spec& spec, const Path& path, FieldErrors& errors) {
  const Path versions = path.Child("versions");
  bool complete = true;
  for (int i = 0; i < spec.versions_size(); ++i) {
    if (spec.versions(i).schema().has_open_apiv3_schema()) continue;
    complete = false;
    errors.push_back(
        Required(versions.Index(i).Child("schema").Child("openAPIV3Schema"), "schemas are required"));
  }
  if (complete && spec.versions_size() > 0 &&
      AllEqual(
          spec, [](const Version& version) -> const auto& { return version.schema(); })) {
    CheckSchema(spec.versions(0).schema().open_apiv3_schema(),
                path.Child("validation").Child("openAPIV3Schema"), errors);
    return;
  }
  for (int i = 0; i < spec.versions_size(); ++i) {
    if (!spec.versions(i).schema().has_open_apiv3_schema()) continue;
    CheckSchema(spec.versions(i).schema().open_apiv3_schema(),
                versions.Index(i).Child("schema").Child("openAPIV3Schema"), errors);
  }
}

void CheckColumns(const Version& version, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("additionalPrinterColumns");
  for (int i = 0; i < version.additional_printer_columns_size(); ++i) {
    CheckColumn(version.additional_printer_columns(i), list.Index(i), errors);
  }
}

void CheckVersions(const Spec& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("versions");
  std::set<std::string_view> names;
  int stored = 0;
  for (int i = 0; i < spec.versions_size(); ++i) {
    const Version& version = spec.versions(i);
    const Path item = list.Index(i);
    stored += version.storage();
    names.insert(version.name());
    Label(version.name(), item.Child("name"), errors);
    if (version.has_deprecation_warning() && !version.deprecated()) {
      errors.push_back(Invalid(item.Child("deprecationWarning"), version.deprecation_warning(),
                               "can only be set for deprecated versions"));
    }
  }
  std::string printed;
  for (const Version& version : spec.versions()) {
    printed += printed.empty() ? "[" : ",";
    printed += api::EncodeJson(version);
  }
  printed = printed.empty() ? "null" : printed + "]";
  if (static_cast<int>(names.size()) != spec.versions_size()) {
    errors.push_back(InvalidRaw(list, printed, "must contain unique version names"));
  }
  if (stored != 1) {
    errors.push_back(InvalidRaw(list, printed, "must have exactly one version marked as storage version"));
  }
  CheckSchemas(spec, path, errors);
  const bool same = AllEqual(
      spec, [](const Version& version) -> const auto& { return version.subresources(); });
  for (int i = 0; i < spec.versions_size(); ++i) {
    if (same && i > 0) break;
    const Path item = list.Index(i);
    const Path& place = same ? path : item;
    CheckSubresources(spec.versions(i).subresources(), place.Child("subresources"), errors);
  }
  for (int i = 0; i < spec.versions_size(); ++i) {
    CheckColumns(spec.versions(i), spec.versions_size() == 1 ? path : list.Index(i), errors);
  }
}

void CheckConversion(const apiextensionsv1::CustomResourceConversion& conversion, const Path& path,
                     FieldErrors& errors) {
  CheckEnum(conversion.strategy(), {"None", "Webhook"}, path.Child("strategy"), errors);
  const Path client = path.Child("webhookClientConfig"), versions = path.Child("conversionReviewVersions");
  if (conversion.strategy() != "Webhook") {
    if (conversion.webhook().has_client_config()) {
      errors.push_back(Forbidden(client, "should not be set when strategy is not set to Webhook"));
    }
    return;
  }
  if (!conversion.webhook().has_client_config()) {
    errors.push_back(Required(client, "required when strategy is set to Webhook"));
  } else {
    const apiextensionsv1::WebhookClientConfig& config = conversion.webhook().client_config();
    if (config.has_url() == config.has_service()) {
      errors.push_back(Required(client, "exactly one of url or service is required"));
    } else if (config.has_url()) {
      CheckWebhookUrl(config.url(), client.Child("url"), errors);
    } else {
      const apiextensionsv1::ServiceReference& service = config.service();
      CheckWebhookService(service.namespace_(), service.name(),
                          service.has_path() ? &service.path() : nullptr,
                          service.has_port() ? service.port() : kHttps, client.Child("service"), errors);
    }
  }
  const Strings& reviews = conversion.webhook().conversion_review_versions();
  if (reviews.empty()) {
    errors.push_back(Required(versions));
  } else if (!Contains(reviews, "v1") && !Contains(reviews, "v1beta1")) {
    errors.push_back(InvalidRaw(versions, PrintStrings(reviews), "must include at least one of v1, v1beta1"));
  }
}

void CheckStored(const Definition& object, FieldErrors& errors) {
  const Path status("status");
  const Path list = status.Child("storedVersions");
  const Strings& stored = object.status().stored_versions();
  if (stored.empty()) errors.push_back(InvalidRaw(list, "null", "must have at least one stored version"));
  for (int i = 0; i < stored.size(); ++i) {
    const auto known = std::any_of(object.spec().versions().begin(), object.spec().versions().end(),
                                   [&](const Version& version) { return version.name() == stored[i]; });
    if (!known) {
      errors.push_back(
          Invalid(list.Index(i), stored[i],
                  "missing from spec.versions; " + stored[i] +
                      " was previously a storage version, and must remain in spec.versions until a storage "
                      "migration ensures no data remains persisted in " +
                      stored[i] + " and removes " + stored[i] + " from status.storedVersions"));
    }
  }
}

void CheckApproval(const Definition& object, FieldErrors& errors) {
  const std::string& group = object.spec().group();
  const bool guarded = group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
                       group.ends_with(".kubernetes.io");
  if (!guarded) return;
  constexpr char kAnnotation[] = "api-approved.kubernetes.io";
  const Path metadata("metadata");
  const Path list = metadata.Child("annotations");
  const auto it = object.metadata().annotations().find(kAnnotation);
  if (it == object.metadata().annotations().end()) {
    errors.push_back(
        Required(list.Key(kAnnotation),
                 "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
                 "https://github.com/kubernetes/enhancements/pull/1111"));
  } else if (!it->second.starts_with("https://") && !it->second.starts_with("unapproved")) {
    errors.push_back(
        Invalid(list.Key(kAnnotation), it->second,
                "protected groups must have approval annotation \"api-approved.kubernetes.io\" with "
                "either a URL or a reason starting with \"unapproved\", see "
                "https://github.com/kubernetes/enhancements/pull/1111"));
  }
}

void CheckDefinition(const Definition& object, FieldErrors& errors) {
  const Path path("spec");
  const Spec& spec = object.spec();
  const std::string& name = object.metadata().name();
  if (name != spec.names().plural() + "." + spec.group()) {
    errors.push_back(
        Invalid(Path("metadata").Child("name"), name, "must be spec.names.plural+\".\"+spec.group"));
  }
  CheckGroup(spec.group(), path.Child("group"), errors);
  CheckEnum(spec.scope(), {"Cluster", "Namespaced"}, path.Child("scope"), errors);
  if (spec.preserve_unknown_fields()) {
    errors.push_back(InvalidBool(path.Child("preserveUnknownFields"), true,
                                 "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                                 "spec.versions[*].schema instead"));
  }
  CheckVersions(spec, path, errors);
  CheckNames(spec.names(), true, path.Child("names"), errors);
  if (spec.has_conversion()) CheckConversion(spec.conversion(), path.Child("conversion"), errors);
  CheckNames(object.status().accepted_names(), false, Path("status").Child("acceptedNames"), errors);
  CheckStored(object, errors);
  CheckApproval(object, errors);
}

bool IsEstablished(const Definition& object) {
  const auto& conditions = object.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [](const auto& condition) {
    return condition.type() == "Established" && condition.status() == "True";
  });
}

void CheckDefinitionUpdate(const Definition& object, const Definition& old, FieldErrors& errors) {
  CheckDefinition(object, errors);
  const Path spec("spec");
  if (IsEstablished(old)) {
    CheckImmutable(object.spec().scope(), old.spec().scope(), spec.Child("scope"), errors);
    CheckImmutable(object.spec().names().kind(), old.spec().names().kind(), spec.Child("names").Child("kind"),
                   errors);
  }
  CheckImmutable(object.spec().group(), old.spec().group(), spec.Child("group"), errors);
  CheckImmutable(object.spec().names().plural(), old.spec().names().plural(),
                 spec.Child("names").Child("plural"), errors);
}

void CheckDefinitionStatus(const Definition& object, const Definition&, FieldErrors& errors) {
  CheckNames(object.status().accepted_names(), false, Path("status").Child("acceptedNames"), errors);
  CheckStored(object, errors);
}

}  // namespace

void RegisterDefinitionRules(RuleTable& table) {
  table.Add<Definition, CheckDefinition>();
  table.AddUpdate<Definition, CheckDefinitionUpdate>(true);
  table.AddStatus<Definition, CheckDefinitionStatus>();
}

}  // namespace keelson::k8s
