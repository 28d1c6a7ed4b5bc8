// CustomResourceDefinitions.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/base/base64.h"
#include "lib/base/text.h"
#include "lib/k8s/text/pem.h"
#include "lib/k8s/validation/extension/schema.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace apiextensionsv1 = api::apiextensions::v1;

namespace {

using Definition = apiextensionsv1::CustomResourceDefinition;
using Spec = apiextensionsv1::CustomResourceDefinitionSpec;
using Version = apiextensionsv1::CustomResourceDefinitionVersion;

constexpr int32_t kHttps = 443;
constexpr char kColumnTypes[] = "must be one of boolean,date,integer,number,string";
constexpr char kFormats[] = "must be one of byte,date,date-time,double,float,int32,int64,password";
constexpr size_t kMaxWarning = 256;

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
  for (int i = 0; i < names.short_names_size(); ++i) {
    Label(names.short_names(i), short_names.Index(i), errors);
  }
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

// Whether there is a path to check further.
bool CheckJsonPath(const std::string& value, bool required, const Path& path, FieldErrors& errors) {
  if (value.empty()) {
    if (required) errors.push_back(Required(path));
    return false;
  }
  if (value.front() == '.') return true;
  errors.push_back(Invalid(path, value, "must be a simple json path starting with ."));
  return false;
}

void CheckColumn(const apiextensionsv1::CustomResourceColumnDefinition& column, const Path& path,
                 FieldErrors& errors) {
  const auto is_any = [](const std::string& value, std::initializer_list<std::string_view> known) {
    return std::find(known.begin(), known.end(), value) != known.end();
  };
  if (column.name().empty()) errors.push_back(Required(path.Child("name")));
  if (column.type().empty()) {
    errors.push_back(Required(path.Child("type"), kColumnTypes));
  } else if (!is_any(column.type(), {"boolean", "date", "integer", "number", "string"})) {
    errors.push_back(Invalid(path.Child("type"), column.type(), kColumnTypes));
  }
  if (!column.format().empty() && !is_any(column.format(), {"byte", "date", "date-time", "double", "float",
                                                            "int32", "int64", "password"})) {
    errors.push_back(Invalid(path.Child("format"), column.format(), kFormats));
  }
  CheckJsonPath(column.json_path(), true, path.Child("JSONPath"), errors);  // upstream's spelling
}

void CheckColumns(const Version& version, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("additionalPrinterColumns");
  for (int i = 0; i < version.additional_printer_columns_size(); ++i) {
    CheckColumn(version.additional_printer_columns(i), list.Index(i), errors);
  }
}

void CheckSubresources(const apiextensionsv1::CustomResourceSubresources& subresources, const Path& path,
                       FieldErrors& errors) {
  if (!subresources.has_scale()) return;
  const apiextensionsv1::CustomResourceSubresourceScale& scale = subresources.scale();
  const Path spec_path = path.Child("scale.specReplicasPath"),
             status_path = path.Child("scale.statusReplicasPath"),
             selector_path = path.Child("scale.labelSelectorPath");
  const std::string &spec = scale.spec_replicas_path(), &status = scale.status_replicas_path(),
                    &selector = scale.label_selector_path();
  if (CheckJsonPath(spec, true, spec_path, errors) && !spec.starts_with(".spec.")) {
    errors.push_back(Invalid(spec_path, spec, "should be a json path under .spec"));
  }
  if (CheckJsonPath(status, true, status_path, errors) && !status.starts_with(".status.")) {
    errors.push_back(Invalid(status_path, status, "should be a json path under .status"));
  }
  if (CheckJsonPath(selector, false, selector_path, errors) && !selector.starts_with(".spec.") &&
      !selector.starts_with(".status.")) {
    errors.push_back(Invalid(selector_path, selector, "should be a json path under either .spec or .status"));
  }
}

void CheckDeprecationWarning(const Version& version, const Path& path, FieldErrors& errors) {
  if (!version.has_deprecation_warning()) return;
  const std::string& warning = version.deprecation_warning();
  const auto problem = [&](std::string_view why) { errors.push_back(Invalid(path, warning, why)); };
  if (!version.deprecated()) return problem("can only be set for deprecated versions");
  if (warning.size() > kMaxWarning) problem("must be <= 256 characters long");
  if (warning.empty()) problem("must not be an empty string");
  const auto control =
      std::find_if(warning.begin(), warning.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control != warning.end()) {
    problem(
        fmt::format("must only contain printable UTF-8 characters; non-printable character found at index {}",
                    control - warning.begin()));
  }
}

// Properties that all versions share are checked once, at the place where they were before versions
// existed. `has`: whether a version has it; `equal`: whether two versions have the same.
template <typename Has, typename Equal>
bool IsShared(const Spec& spec, const Has& has, const Equal& equal) {
  return spec.versions_size() > 0 &&
         std::all_of(spec.versions().begin(), spec.versions().end(), [&](const Version& version) {
           return has(version) && equal(version, spec.versions(0));
         });
}

struct Shared {
  explicit Shared(const Spec& spec)
      : schema(IsShared(
            spec, [](const Version& v) { return v.has_schema(); },
            [](const Version& a, const Version& b) { return SameMessage(a.schema(), b.schema()); })),
        subresources(IsShared(
            spec, [](const Version& v) { return v.has_subresources(); },
            [](const Version& a, const Version& b) {
              return SameMessage(a.subresources(), b.subresources());
            })),
        columns(IsShared(
            spec, [](const Version& v) { return v.additional_printer_columns_size() > 0; },
            [](const Version& a, const Version& b) {
              const auto &left = a.additional_printer_columns(), &right = b.additional_printer_columns();
              return std::equal(left.begin(), left.end(), right.begin(), right.end(), SameMessage);
            })) {}
  bool schema, subresources, columns;
};

void CheckSchemaOf(const Version& version, bool has_status, const SchemaRules& rules, const Path& path,
                   FieldErrors& errors) {
  if (!version.schema().has_open_apiv3_schema()) return;
  CheckSchema(version.schema().open_apiv3_schema(), has_status, rules, path.Child("openAPIV3Schema"), errors);
}

void CheckVersions(const Spec& spec, const Shared& shared, const SchemaRules& rules, const Path& path,
                   FieldErrors& errors) {
  const Path list = path.Child("versions");
  for (int i = 0; i < spec.versions_size(); ++i) {
    if (spec.versions(i).schema().has_open_apiv3_schema()) continue;
    errors.push_back(Required(list.Index(i).Child("schema").Child("openAPIV3Schema")));
  }
  std::set<std::string_view> names;
  int stored = 0;
  for (int i = 0; i < spec.versions_size(); ++i) {
    const Version& version = spec.versions(i);
    const Path item = list.Index(i);
    stored += version.storage();
    names.insert(version.name());
    Label(version.name(), item.Child("name"), errors);
    CheckDeprecationWarning(version, item.Child("deprecationWarning"), errors);
    if (!shared.schema) {
      CheckSchemaOf(version, version.subresources().has_status(), rules, item.Child("schema"), errors);
    }
    if (!shared.subresources) CheckSubresources(version.subresources(), item.Child("subresources"), errors);
    if (!shared.columns) CheckColumns(version, item, errors);
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
}

void CheckShared(const Spec& spec, const Shared& shared, const SchemaRules& rules, const Path& path,
                 FieldErrors& errors) {
  const bool has_status =
      std::any_of(spec.versions().begin(), spec.versions().end(),
                  [](const Version& version) { return version.subresources().has_status(); });
  if (shared.schema) CheckSchemaOf(spec.versions(0), has_status, rules, path.Child("validation"), errors);
  if (shared.subresources) {
    CheckSubresources(spec.versions(0).subresources(), path.Child("subresources"), errors);
  }
  if (shared.columns) CheckColumns(spec.versions(0), path, errors);
}

bool IsReviewVersion(std::string_view version) { return version == "v1" || version == "v1beta1"; }

// `recognized`: at least one must be a version that this API knows.
void CheckReviewVersions(const Strings& versions, bool recognized, const Path& path, FieldErrors& errors) {
  if (versions.empty()) {
    errors.push_back(Required(path));
    return;
  }
  std::set<std::string_view> seen;
  for (int i = 0; i < versions.size(); ++i) {
    if (seen.insert(versions[i]).second) {
      AddProblems(CheckDns1035Label(versions[i]), versions[i], path.Index(i), errors);
    } else {
      errors.push_back(Invalid(path.Index(i), versions[i], "duplicate version"));
    }
  }
  if (recognized && std::none_of(seen.begin(), seen.end(), IsReviewVersion)) {
    errors.push_back(InvalidRaw(path, PrintStrings(versions), "must include at least one of v1, v1beta1"));
  }
}

// What is wrong with a bundle of certificates, in client-go's words; empty if it is fine, or not there.
std::string BundleProblem(std::string_view bundle) {
  if (bundle.empty()) return "";
  bool any = false;
  std::string_view rest = bundle;
  while (const std::optional<PemBlock> block = NextPemBlock(rest)) {
    if (block->type != "CERTIFICATE" || block->has_headers) continue;
    if (!IsCertificate(block->bytes)) return "unable to load root certificates: failed to parse certificate";
    any = true;
  }
  return any ? "" : "unable to load root certificates: unable to parse bytes as PEM block";
}

// Rules of conversions that a stored definition may break.
struct ConversionRules {
  bool known_reviews = true;
  bool valid_bundle = true;
};

void CheckConversion(const apiextensionsv1::CustomResourceConversion& conversion,
                     const ConversionRules& rules, const Path& path, FieldErrors& errors) {
  CheckEnum(conversion.strategy(), {"None", "Webhook"}, path.Child("strategy"), errors);
  const Path client = path.Child("webhookClientConfig"), versions = path.Child("conversionReviewVersions");
  if (conversion.strategy() != "Webhook") {
    if (conversion.webhook().has_client_config()) {
      errors.push_back(Forbidden(client, "should not be set when strategy is not set to Webhook"));
    }
    if (!conversion.webhook().conversion_review_versions().empty()) {
      errors.push_back(Forbidden(versions, "should not be set when strategy is not set to Webhook"));
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
  const std::string& bundle = conversion.webhook().client_config().ca_bundle();
  if (const std::string problem = BundleProblem(bundle); rules.valid_bundle && !problem.empty()) {
    errors.push_back(Invalid(client.Child("caBundle"), EncodeBase64(bundle), problem));
  }
  CheckReviewVersions(conversion.webhook().conversion_review_versions(), rules.known_reviews, versions,
                      errors);
}

void CheckStored(const Definition& object, FieldErrors& errors) {
  const Path status("status");
  const Path list = status.Child("storedVersions");
  const Strings& stored = object.status().stored_versions();
  if (stored.empty()) {
    errors.push_back(InvalidRaw(list, "null", "must have at least one stored version"));
    return;
  }
  for (const Version& version : object.spec().versions()) {
    if (version.storage() && !Contains(stored, version.name())) {
      errors.push_back(
          InvalidRaw(list, PrintStrings(stored), "must have the storage version " + version.name()));
    }
  }
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

enum class Approval { kMissing, kBypassed, kApproved, kInvalid };

constexpr char kApproval[] = "api-approved.kubernetes.io";

Approval ApprovalOf(const Definition& object) {
  const auto it = object.metadata().annotations().find(kApproval);
  if (it == object.metadata().annotations().end() || it->second.empty()) return Approval::kMissing;
  const std::string& text = it->second;
  if (text.starts_with("unapproved")) return Approval::kBypassed;
  const size_t scheme = text.find("://");
  const bool is_url = scheme != std::string::npos && scheme > 0 && scheme + 3 < text.size() &&
                      text[scheme + 3] != '/' && text.find_first_of(" \t\n") == std::string::npos;
  return is_url ? Approval::kApproved : Approval::kInvalid;
}

// Kubernetes' own groups need approval. What the stored object has (null: none) may stay.
void CheckApproval(const Definition& object, const Definition* old, FieldErrors& errors) {
  const std::string& group = object.spec().group();
  const bool guarded = group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
                       group.ends_with(".kubernetes.io");
  const Approval approval = ApprovalOf(object);
  if (!guarded || (old != nullptr && ApprovalOf(*old) == approval)) return;
  const Path metadata("metadata");
  const Path list = metadata.Child("annotations");
  constexpr char kWhy[] = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
  constexpr char kSee[] = ", see https://github.com/kubernetes/enhancements/pull/1111";
  if (approval == Approval::kMissing) {
    errors.push_back(Required(list.Key(kApproval), std::string(kWhy) + kSee));
  } else if (approval == Approval::kInvalid) {
    errors.push_back(
        Invalid(list.Key(kApproval), object.metadata().annotations().at(kApproval),
                std::string(kWhy) + " with either a URL or a reason starting with \"unapproved\"" + kSee));
  }
}

// Checks a whole new object, or an update of `old`.
void CheckWhole(const Definition& object, const Definition* old, FieldErrors& errors) {
  const Path path("spec");
  const Spec& spec = object.spec();
  const Shared shared(spec);
  const SchemaRules rules = old == nullptr ? SchemaRules{} : RulesAfter(old->spec());
  const auto has_unknown_reviews = [](const Spec& stored) {
    const Strings& reviews = stored.conversion().webhook().conversion_review_versions();
    return !reviews.empty() && std::none_of(reviews.begin(), reviews.end(), IsReviewVersion);
  };
  CheckGroup(spec.group(), path.Child("group"), errors);
  CheckEnum(spec.scope(), {"Cluster", "Namespaced"}, path.Child("scope"), errors);
  CheckVersions(spec, shared, rules, path, errors);
  CheckNames(spec.names(), true, path.Child("names"), errors);
  CheckShared(spec, shared, rules, path, errors);
  CheckSelectableFields(spec, old == nullptr ? nullptr : &old->spec(), shared.schema, path, errors);
  if (spec.has_conversion()) {
    ConversionRules conversion;
    if (old != nullptr) {
      conversion.known_reviews = !has_unknown_reviews(old->spec());
      conversion.valid_bundle =
          BundleProblem(old->spec().conversion().webhook().client_config().ca_bundle()).empty();
    }
    CheckConversion(spec.conversion(), conversion, path.Child("conversion"), errors);
  }
}

// Checks the status, and rules that compare with the old object.
void CheckRest(const Definition& object, const Definition* old, FieldErrors& errors) {
  CheckNames(object.status().accepted_names(), false, Path("status").Child("acceptedNames"), errors);
  CheckStored(object, errors);
  CheckApproval(object, old, errors);
  if (object.spec().preserve_unknown_fields() && (old == nullptr || !old->spec().preserve_unknown_fields())) {
    errors.push_back(InvalidBool(Path("spec").Child("preserveUnknownFields"), true,
                                 "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                                 "spec.versions[*].schema instead"));
  }
}

void CheckDefinition(const Definition& object, FieldErrors& errors) {
  const std::string& name = object.metadata().name();
  if (name != object.spec().names().plural() + "." + object.spec().group()) {
    errors.push_back(
        Invalid(Path("metadata").Child("name"), name, "must be spec.names.plural+\".\"+spec.group"));
  }
  CheckWhole(object, nullptr, errors);
  CheckRest(object, nullptr, errors);
}

bool IsEstablished(const Definition& object) {
  const auto& conditions = object.status().conditions();
  return std::any_of(conditions.begin(), conditions.end(), [](const auto& condition) {
    return condition.type() == "Established" && condition.status() == "True";
  });
}

void CheckDefinitionUpdate(const Definition& object, const Definition& old, FieldErrors& errors) {
  CheckWhole(object, &old, errors);
  const Path spec("spec");
  const Path names = spec.Child("names");
  if (IsEstablished(old)) {
    CheckImmutable(object.spec().scope(), old.spec().scope(), spec.Child("scope"), errors);
    CheckImmutable(object.spec().names().kind(), old.spec().names().kind(), names.Child("kind"), errors);
  }
  CheckImmutable(object.spec().group(), old.spec().group(), spec.Child("group"), errors);
  CheckImmutable(object.spec().names().plural(), old.spec().names().plural(), names.Child("plural"), errors);
  CheckRest(object, &old, errors);
}

void CheckDefinitionStatus(const Definition& object, const Definition&, FieldErrors& errors) {
  CheckNames(object.status().accepted_names(), false, Path("status").Child("acceptedNames"), errors);
}

}  // namespace

void RegisterDefinitionRules(RuleTable& table) {
  table.Add<Definition, CheckDefinition>();
  table.AddUpdate<Definition, CheckDefinitionUpdate>(true);
  table.AddStatus<Definition, CheckDefinitionStatus>();
}

}  // namespace keelson::k8s
