// Configuration, namespaces, service accounts and leases.
#include <algorithm>

#include "lib/k8s/text/json_problem.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kMaxContent = 1024 * 1024;
constexpr char kWhenImmutable[] = "field is immutable when `immutable` is set";
constexpr char kAccountAnnotation[] = "kubernetes.io/service-account.name";

// For maps to strings and to bytes.
template <typename Map>
std::vector<std::string> Keys(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  return keys;
}

void CheckConfigMap(const corev1::ConfigMap& object, FieldErrors& errors) {
  const Path data("data"), binary("binaryData");
  constexpr char kTwice[] = "duplicate of key present in binaryData";
  int64_t total = 0;
  for (const std::string& key : Keys(object.data())) {
    AddProblems(CheckConfigKey(key), key, data.Key(key), errors);
    if (object.binary_data().contains(key)) errors.push_back(Invalid(data.Key(key), key, kTwice));
    total += static_cast<int64_t>(object.data().at(key).size());
  }
  for (const std::string& key : Keys(object.binary_data())) {
    AddProblems(CheckConfigKey(key), key, binary.Key(key), errors);
    total += static_cast<int64_t>(object.binary_data().at(key).size());
  }
  // The error is about the whole object; upstream spells its path like this.
  if (total > kMaxContent) errors.push_back(TooLong(Path("[]"), kMaxContent));
}

void CheckConfigMapUpdate(const corev1::ConfigMap& object, const corev1::ConfigMap& old,
                          FieldErrors& errors) {
  if (old.immutable()) {
    if (!object.immutable()) errors.push_back(Forbidden(Path("immutable"), kWhenImmutable));
    if (!SameMap(object.data(), old.data())) errors.push_back(Forbidden(Path("data"), kWhenImmutable));
    if (!SameMap(object.binary_data(), old.binary_data())) {
      errors.push_back(Forbidden(Path("binaryData"), kWhenImmutable));
    }
  }
  CheckConfigMap(object, errors);
}

void CheckDockerConfig(const corev1::Secret& object, const char* key, FieldErrors& errors) {
  const Path data("data");
  const auto config = object.data().find(key);
  if (config == object.data().end()) {
    errors.push_back(Required(data.Key(key)));
  } else if (const std::string problem = JsonObjectProblem(config->second); !problem.empty()) {
    errors.push_back(Invalid(data.Key(key), "<secret contents redacted>", problem));
  }
}

void CheckSecretType(const corev1::Secret& object, FieldErrors& errors) {
  const Path data("data");
  const auto require = [&](const char* key) {
    if (!object.data().contains(key)) errors.push_back(Required(data.Key(key)));
  };
  const std::string& type = object.type();
  if (type == "kubernetes.io/service-account-token") {
    const auto& annotations = object.metadata().annotations();
    const auto account = annotations.find(kAccountAnnotation);
    if (account == annotations.end() || account->second.empty()) {
      errors.push_back(Required(Path("metadata").Child("annotations").Key(kAccountAnnotation)));
    }
  } else if (type == "kubernetes.io/dockercfg") {
    CheckDockerConfig(object, ".dockercfg", errors);
  } else if (type == "kubernetes.io/dockerconfigjson") {
    CheckDockerConfig(object, ".dockerconfigjson", errors);
  } else if (type == "kubernetes.io/basic-auth") {
    if (!object.data().contains("username") && !object.data().contains("password")) {
      require("username");
      require("password");
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    const auto key = object.data().find("ssh-privatekey");
    if (key == object.data().end() || key->second.empty()) {
      errors.push_back(Required(data.Key("ssh-privatekey")));
    }
  } else if (type == "kubernetes.io/tls") {
    require("tls.crt");
    require("tls.key");
  }
}

void CheckSecret(const corev1::Secret& object, FieldErrors& errors) {
  const Path data("data");
  int64_t total = 0;
  for (const std::string& key : Keys(object.data())) {
    AddProblems(CheckConfigKey(key), key, data.Key(key), errors);
    total += static_cast<int64_t>(object.data().at(key).size());
  }
  if (total > kMaxContent) errors.push_back(TooLong(data, kMaxContent));
  CheckSecretType(object, errors);
}

void CheckSecretUpdate(const corev1::Secret& object, const corev1::Secret& old, FieldErrors& errors) {
  CheckImmutable(object.type(), old.type(), Path("type"), errors);
  if (old.immutable()) {
    if (!object.immutable()) errors.push_back(Forbidden(Path("immutable"), kWhenImmutable));
    if (!SameMap(object.data(), old.data())) errors.push_back(Forbidden(Path("data"), kWhenImmutable));
  }
  CheckSecret(object, errors);
}

void CheckNamespaceObject(const corev1::Namespace& object, FieldErrors& errors) {
  const Path spec("spec");
  for (const std::string& finalizer : object.spec().finalizers()) {
    CheckFinalizer(finalizer, spec.Child("finalizers"), errors);
  }
}

void CheckNamespaceChange(const corev1::Namespace&, const corev1::Namespace&, FieldErrors&) {}

// Only the finalize subresource changes finalizers.
void CheckNamespaceFinalize(const corev1::Namespace& object, const corev1::Namespace&, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("finalizers");
  for (int i = 0; i < object.spec().finalizers_size(); ++i) {
    CheckFinalizer(object.spec().finalizers(i), list.Index(i), errors);
  }
}

void CheckNamespaceStatus(const corev1::Namespace& object, const corev1::Namespace&, FieldErrors& errors) {
  const Path status("status");
  const std::string& phase = object.status().phase();
  if (!object.metadata().has_deletion_timestamp()) {
    if (phase != "Active") {
      errors.push_back(
          Invalid(status.Child("Phase"), phase, "may only be 'Active' if `deletionTimestamp` is empty"));
    }
  } else if (phase != "Terminating") {
    errors.push_back(Invalid(status.Child("Phase"), phase,
                             "may only be 'Terminating' if `deletionTimestamp` is not empty"));
  }
}

void CheckServiceAccount(const corev1::ServiceAccount&, FieldErrors&) {}

void CheckLease(const coordinationv1::Lease& object, FieldErrors& errors) {
  const Path path("spec");
  const coordinationv1::LeaseSpec& spec = object.spec();
  if (spec.has_lease_duration_seconds() && spec.lease_duration_seconds() <= 0) {
    errors.push_back(Invalid(path.Child("leaseDurationSeconds"), int64_t{spec.lease_duration_seconds()},
                             "must be greater than 0"));
  }
  if (spec.has_lease_transitions()) {
    CheckNonNegative(spec.lease_transitions(), path.Child("leaseTransitions"), errors);
  }
  if (spec.has_strategy()) {
    CheckOneOf(spec.strategy(), {"OldestEmulationVersion"}, path.Child("strategy"), errors);
  }
  if (!spec.preferred_holder().empty() && spec.strategy().empty()) {
    errors.push_back(
        Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"));
  }
}

}  // namespace

void RegisterConfigRules(RuleTable& table) {
  table.Add<corev1::ConfigMap, CheckConfigMap>();
  table.AddUpdate<corev1::ConfigMap, CheckConfigMapUpdate>(true);
  table.Add<corev1::Secret, CheckSecret>();
  table.AddUpdate<corev1::Secret, CheckSecretUpdate>(true);
  table.Add<corev1::Namespace, CheckNamespaceObject>().name = CheckDns1123Label;
  table.AddUpdate<corev1::Namespace, CheckNamespaceChange>(true);
  table.AddPart<corev1::Namespace, CheckNamespaceFinalize>("finalize");
  table.AddStatus<corev1::Namespace, CheckNamespaceStatus>();
  table.Add<corev1::ServiceAccount, CheckServiceAccount>();
  table.Add<coordinationv1::Lease, CheckLease>();
}

}  // namespace keelson::k8s
