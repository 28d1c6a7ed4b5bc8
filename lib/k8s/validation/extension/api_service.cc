// APIServices: which server answers for a group and version.
#include <fmt/format.h>

#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/base/text.h"
#include "lib/k8s/validation/extension/storage_migration.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace apiregistrationv1 = api::apiregistration::v1;

namespace {

void CheckLocal(const apiregistrationv1::APIServiceSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.ca_bundle().empty()) {
    errors.push_back(Invalid(path.Child("caBundle"), fmt::format("{} bytes", spec.ca_bundle().size()),
                             "local APIServices may not have a caBundle"));
  }
  if (spec.insecure_skip_tls_verify()) {
    errors.push_back(InvalidBool(path.Child("insecureSkipTLSVerify"), true,
                                 "local APIServices may not have insecureSkipTLSVerify"));
  }
}

void CheckService(const apiregistrationv1::APIServiceSpec& spec, const Path& path, FieldErrors& errors) {
  const Path service = path.Child("service");
  if (spec.service().namespace_().empty()) errors.push_back(Required(service.Child("namespace")));
  if (spec.service().name().empty()) errors.push_back(Required(service.Child("name")));
  if (const Problems problems = CheckPortNumber(spec.service().port()); !problems.empty()) {
    errors.push_back(Invalid(service.Child("port"), int64_t{spec.service().port()},
                             "port is not valid: " + Join(problems, ", ")));
  }
  if (spec.insecure_skip_tls_verify() && !spec.ca_bundle().empty()) {
    errors.push_back(
        InvalidBool(path.Child("insecureSkipTLSVerify"), true, "may not be true if caBundle is present"));
  }
}

void CheckApiService(const apiregistrationv1::APIService& object, FieldErrors& errors) {
  const Path path("spec");
  const apiregistrationv1::APIServiceSpec& spec = object.spec();
  const std::string& name = object.metadata().name();
  const std::string required = spec.version() + "." + spec.group();
  if (CheckPathSegmentName(name).empty() && name != required) {
    errors.push_back(Invalid(Path("metadata").Child("name"), name,
                             "must be `spec.version+\".\"+spec.group`: " + Quote(required)));
  }
  if (spec.group().empty() && spec.version() != "v1") {
    errors.push_back(
        Required(path.Child("group"), "only v1 may have an empty group and it better be legacy kube"));
  }
  if (!spec.group().empty()) {
    AddProblems(CheckDns1123Subdomain(spec.group()), spec.group(), path.Child("group"), errors);
  }
  AddProblems(CheckDns1035Label(spec.version()), spec.version(), path.Child("version"), errors);
  const auto priority = [&](int32_t value, int32_t most, const char* field) {
    if (value > 0 && value <= most) return;
    errors.push_back(
        Invalid(path.Child(field), int64_t{value}, fmt::format("must be positive and less than {}", most)));
  };
  priority(spec.group_priority_minimum(), 20000, "groupPriorityMinimum");
  priority(spec.version_priority(), 1000, "versionPriority");
  if (spec.has_service()) {
    CheckService(spec, path, errors);
  } else {
    CheckLocal(spec, path, errors);
  }
}

void CheckApiServiceStatus(const apiregistrationv1::APIService& object, const apiregistrationv1::APIService&,
                           FieldErrors& errors) {
  const Path status("status");
  const Path list = status.Child("conditions");
  for (int i = 0; i < object.status().conditions_size(); ++i) {
    const Path item = list.Index(i);
    CheckOneOf(object.status().conditions(i).status(), {"True", "False", "Unknown"}, item.Child("status"),
               errors);
  }
}

}  // namespace

void RegisterApiServiceRules(RuleTable& table) {
  table.Add<apiregistrationv1::APIService, CheckApiService>().name = CheckPathSegmentName;
  table.AddStatus<apiregistrationv1::APIService, CheckApiServiceStatus>();
  RegisterStorageMigrationRules(table);
}

}  // namespace keelson::k8s
