// Environment variables of containers, and the fields that they may refer to.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/base/text.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

const std::vector<std::string_view> kEnvFields = {
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs",     "status.podIP", "status.podIPs"};
// Everything that the downward API can name; each use supports a part of it.
const std::vector<std::string_view> kPodFields = {
    "metadata.annotations", "metadata.labels",    "metadata.name",
    "metadata.namespace",   "metadata.uid",       "spec.nodeName",
    "spec.restartPolicy",   "spec.schedulerName", "spec.serviceAccountName",
    "status.hostIP",        "status.hostIPs",     "status.phase",
    "status.podIP",         "status.podIPs"};
const std::vector<std::string_view> kByteDivisors = {"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                                     "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};

bool Contains(const std::vector<std::string_view>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// "metadata.labels['app']" is {metadata.labels, app}.
struct Subscripted {
  std::string_view path, subscript;
  bool ok = false;
};

Subscripted SplitSubscript(std::string_view field) {
  if (!field.ends_with("']")) return {field, {}, false};
  const std::string_view body = field.substr(0, field.size() - 2);
  const size_t open = body.find("['");
  if (open == std::string_view::npos || open == 0) return {field, {}, false};
  return {body.substr(0, open), body.substr(open + 2), true};
}

void CheckDivisor(const corev1::ResourceFieldSelector& field, const Path& path, FieldErrors& errors) {
  if (!field.has_divisor()) return;
  const api::Amount amount = api::Amount::Of(field.divisor());
  if (amount.IsZero()) return;
  const std::string divisor = amount.ToString();
  const std::string& resource = field.resource();
  if (resource == "limits.cpu" || resource == "requests.cpu") {
    if (divisor == "1m" || divisor == "1") return;
    errors.push_back(Invalid(path.Child("divisor"), resource,
                             "only divisor's values 1m and 1 are supported with the cpu resource"));
    return;
  }
  std::string_view kind;
  if (resource == "limits.memory" || resource == "requests.memory") kind = "memory";
  if (resource == "limits.ephemeral-storage" || resource == "requests.ephemeral-storage") {
    kind = "local ephemeral storage";
  }
  if (resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-")) {
    kind = "hugepages";
  }
  if (kind.empty() || Contains(kByteDivisors, divisor)) return;
  errors.push_back(Invalid(path.Child("divisor"), resource,
                           fmt::format("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, "
                                       "1Pi, 1Ei are supported with the {} resource",
                                       kind)));
}

template <typename Ref>
void CheckKeyRef(const Ref& ref, const Path& path, FieldErrors& errors) {
  const std::string& name = ref.local_object_reference().name();
  AddProblems(CheckDns1123Subdomain(name), name, path.Child("name"), errors);
  CheckName(ref.key(), CheckConfigKey, path.Child("key"), errors);
}

void CheckFileKey(const corev1::FileKeySelector& ref, const Path& path, FieldErrors& errors) {
  CheckName(ref.key(), CheckEnvVarName, path.Child("key"), errors);
  CheckName(ref.volume_name(), CheckDns1123Label, path.Child("volumeName"), errors);
  if (ref.path().empty()) {
    errors.push_back(Required(path.Child("path")));
  } else {
    CheckNoBacksteps(ref.path(), path.Child("path"), errors);
  }
}

void CheckSource(const corev1::EnvVar& variable, const Path& path, FieldErrors& errors) {
  const corev1::EnvVarSource& source = variable.value_from();
  if (source.has_field_ref()) {
    CheckObjectField(source.field_ref(), kEnvFields, path.Child("fieldRef"), errors);
  }
  if (source.has_resource_field_ref()) {
    CheckResourceField(source.resource_field_ref(), false, path.Child("resourceFieldRef"), errors);
  }
  if (source.has_config_map_key_ref()) {
    CheckKeyRef(source.config_map_key_ref(), path.Child("configMapKeyRef"), errors);
  }
  if (source.has_secret_key_ref()) CheckKeyRef(source.secret_key_ref(), path.Child("secretKeyRef"), errors);
  if (source.has_file_key_ref()) CheckFileKey(source.file_key_ref(), path.Child("fileKeyRef"), errors);
  const int count = int{source.has_field_ref()} + int{source.has_resource_field_ref()} +
                    int{source.has_config_map_key_ref()} + int{source.has_secret_key_ref()} +
                    int{source.has_file_key_ref()};
  if (count == 0) {
    errors.push_back(Invalid(path, "",
                             "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                             "`secretKeyRef` or `fileKeyRef`"));
  } else if (!variable.value().empty()) {
    errors.push_back(Invalid(path, "", "may not be specified when `value` is not empty"));
  } else if (count > 1) {
    errors.push_back(Invalid(path, "", "may not have more than one field specified at a time"));
  }
}

void CheckEnvFrom(const corev1::EnvFromSource& source, const Path& list, int index, FieldErrors& errors) {
  const Path item = list.Index(index);
  if (!source.prefix().empty()) {
    AddProblems(CheckEnvVarName(source.prefix()), source.prefix(), item.Child("prefix"), errors);
  }
  if (source.has_config_map_ref()) {
    CheckName(source.config_map_ref().local_object_reference().name(), CheckDns1123Subdomain,
              item.Child("configMapRef").Child("name"), errors);
  }
  if (source.has_secret_ref()) {
    CheckName(source.secret_ref().local_object_reference().name(), CheckDns1123Subdomain,
              item.Child("secretRef").Child("name"), errors);
  }
  // Upstream's errors for these two name the list, not the entry.
  const int count = int{source.has_config_map_ref()} + int{source.has_secret_ref()};
  if (count == 0) errors.push_back(Invalid(list, "", "must specify one of: `configMapRef` or `secretRef`"));
  if (count > 1) errors.push_back(Invalid(list, "", "may not have more than one field specified at a time"));
}

}  // namespace

void CheckObjectField(const corev1::ObjectFieldSelector& field,
                      const std::vector<std::string_view>& supported, const Path& path, FieldErrors& errors) {
  if (field.api_version().empty()) {
    errors.push_back(Required(path.Child("apiVersion")));
    return;
  }
  const Path field_path = path.Child("fieldPath");
  const std::string& name = field.field_path();
  if (name.empty()) {
    errors.push_back(Required(field_path));
    return;
  }
  const auto unconvertible = [&](std::string_view why, std::string_view what) {
    errors.push_back(Invalid(field_path, name, fmt::format("error converting fieldPath: {}: {}", why, what)));
  };
  if (field.api_version() != "v1") return unconvertible("unsupported pod version", field.api_version());
  const Subscripted split = SplitSubscript(name);
  if (split.ok) {
    const bool labels = split.path == "metadata.labels";
    if (!labels && split.path != "metadata.annotations") {
      return unconvertible("field label does not support subscript", name);
    }
    const std::string subscript = labels ? std::string(split.subscript) : Lower(split.subscript);
    AddProblems(CheckQualifiedName(subscript), subscript, path, errors);
    return;
  }
  // The name of spec.nodeName before v1.
  const std::string_view current = name == "spec.host" ? "spec.nodeName" : std::string_view(name);
  if (!Contains(kPodFields, current)) return unconvertible("field label not supported", name);
  if (!Contains(supported, current)) errors.push_back(NotSupported(field_path, current, supported));
}

void CheckResourceField(const corev1::ResourceFieldSelector& field, bool in_volume, const Path& path,
                        FieldErrors& errors) {
  static const std::vector<std::string_view> kSupported = {
      "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
      "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  if (in_volume && field.container_name().empty()) {
    errors.push_back(Required(path.Child("containerName")));
  } else if (field.resource().empty()) {
    errors.push_back(Required(path.Child("resource")));
  } else if (!field.resource().starts_with("limits.hugepages-") &&
             !field.resource().starts_with("requests.hugepages-")) {
    CheckEnum(field.resource(), kSupported, path.Child("resource"), errors);
  }
  CheckDivisor(field, path, errors);
}

void CheckEnv(const corev1::Container& container, const Path& path, FieldErrors& errors) {
  const Path env = path.Child("env");
  for (int i = 0; i < container.env_size(); ++i) {
    const corev1::EnvVar& variable = container.env(i);
    const Path item = env.Index(i);
    CheckName(variable.name(), CheckEnvVarName, item.Child("name"), errors);
    if (variable.has_value_from()) CheckSource(variable, item.Child("valueFrom"), errors);
  }
  const Path list = path.Child("envFrom");
  for (int i = 0; i < container.env_from_size(); ++i) CheckEnvFrom(container.env_from(i), list, i, errors);
}

void CheckFileKeyVolumes(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    const Path env = here.Child("env");
    for (int i = 0; i < container.env_size(); ++i) {
      if (!container.env(i).value_from().has_file_key_ref()) continue;
      const std::string& name = container.env(i).value_from().file_key_ref().volume_name();
      const Path item = env.Index(i), from = item.Child("valueFrom"), ref = from.Child("fileKeyRef");
      const auto volume = std::find_if(spec.volumes().begin(), spec.volumes().end(),
                                       [&](const corev1::Volume& one) { return one.name() == name; });
      if (volume == spec.volumes().end()) {
        errors.push_back(NotFound(ref.Child("volumeName"), name));
      } else if (!volume->volume_source().has_empty_dir()) {
        errors.push_back(
            Invalid(ref.Child("volumeName"), name, "referenced volume must be of type emptyDir"));
      }
    }
  });
}

}  // namespace keelson::k8s
