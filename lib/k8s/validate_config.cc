// Configuration, identities, events, leases and priorities.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/proto/scheduling_v1.pb.h"
#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace schedulingv1 = api::scheduling::v1;

namespace {

constexpr int64_t kMaxContent = 1024 * 1024;
constexpr int32_t kHighestUserPriority = 1'000'000'000;
constexpr char kWhenImmutable[] = "field is immutable when `immutable` is set";
constexpr char kAccountAnnotation[] = "kubernetes.io/service-account.name";

void CheckConfigMap(const corev1::ConfigMap& object, FieldErrors& errors) {
  const Path data("data"), binary("binaryData");
  int64_t total = 0;
  for (const auto& [key, value] : object.data()) {
    AddProblems(CheckConfigKey(key), key, data.Key(key), errors);
    if (object.binary_data().contains(key)) {
      errors.push_back(Invalid(data.Key(key), key, "duplicate of key present in binaryData"));
    }
    total += static_cast<int64_t>(value.size());
  }
  for (const auto& [key, value] : object.binary_data()) {
    AddProblems(CheckConfigKey(key), key, binary.Key(key), errors);
    total += static_cast<int64_t>(value.size());
  }
  // The whole object is at fault; this is how upstream spells such a path.
  if (total > kMaxContent) errors.push_back(TooLong(Path("[]"), kMaxContent));
}

void CheckConfigMapUpdate(const corev1::ConfigMap& object, const corev1::ConfigMap& old,
                          FieldErrors& errors) {
  if (!old.immutable()) return;
  if (!object.immutable()) errors.push_back(Forbidden(Path("immutable"), kWhenImmutable));
  if (!SameMap(object.data(), old.data())) errors.push_back(Forbidden(Path("data"), kWhenImmutable));
  if (!SameMap(object.binary_data(), old.binary_data())) {
    errors.push_back(Forbidden(Path("binaryData"), kWhenImmutable));
  }
}

void CheckSecretKeys(const corev1::Secret& object, FieldErrors& errors) {
  const Path data("data");
  const auto require = [&](const char* key) {
    if (!object.data().contains(key)) errors.push_back(Required(data.Key(key)));
  };
  const std::string& type = object.type();
  if (type == "kubernetes.io/service-account-token") {
    const auto& annotations = object.metadata().annotations();
    const auto account = annotations.find(kAccountAnnotation);
    if (account == annotations.end() || account->second.empty()) {
      const Path metadata("metadata");
      const Path list = metadata.Child("annotations");
      errors.push_back(Required(list.Key(kAccountAnnotation)));
    }
  } else if (type == "kubernetes.io/dockercfg") {
    require(".dockercfg");
  } else if (type == "kubernetes.io/dockerconfigjson") {
    require(".dockerconfigjson");
  } else if (type == "kubernetes.io/basic-auth") {
    if (!object.data().contains("username") && !object.data().contains("password")) {
      require("username");
      require("password");
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    const auto key = object.data().find("ssh-privatekey");
    if (key == object.data().end() || key->second.empty())
      errors.push_back(Required(data.Key("ssh-privatekey")));
  } else if (type == "kubernetes.io/tls") {
    require("tls.crt");
    require("tls.key");
  }
}

void CheckSecret(const corev1::Secret& object, FieldErrors& errors) {
  const Path data("data");
  int64_t total = 0;
  for (const auto& [key, value] : object.data()) {
    AddProblems(CheckConfigKey(key), key, data.Key(key), errors);
    total += static_cast<int64_t>(value.size());
  }
  if (total > kMaxContent) errors.push_back(TooLong(data, kMaxContent));
  CheckSecretKeys(object, errors);
}

void CheckSecretUpdate(const corev1::Secret& object, const corev1::Secret& old, FieldErrors& errors) {
  CheckImmutable(object.type(), old.type(), Path("type"), errors);
  if (!old.immutable()) return;
  if (!object.immutable()) errors.push_back(Forbidden(Path("immutable"), kWhenImmutable));
  if (!SameMap(object.data(), old.data())) errors.push_back(Forbidden(Path("data"), kWhenImmutable));
}

void CheckNamespaceObject(const corev1::Namespace& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path list = spec.Child("finalizers");
  for (int i = 0; i < object.spec().finalizers_size(); ++i) {
    const std::string& finalizer = object.spec().finalizers(i);
    const Problems problems = CheckQualifiedName(finalizer);
    AddProblems(problems, finalizer, list, errors);
    if (problems.empty() && finalizer.find('/') == std::string::npos && finalizer != "kubernetes") {
      errors.push_back(
          Invalid(list, finalizer, "name is neither a standard finalizer name nor is it fully qualified"));
    }
  }
}

void CheckServiceAccount(const corev1::ServiceAccount&, FieldErrors&) {}

// An event lives beside the object it is about; those about cluster objects live in "default".
void CheckEventPlace(const std::string& ns, const std::string& involved, const Path& path,
                     FieldErrors& errors) {
  if (involved.empty()) {
    if (ns != "default" && ns != "kube-system" && !ns.empty()) {
      errors.push_back(Invalid(path.Child("namespace"), involved, "does not match event.namespace"));
    }
  } else if (involved != ns) {
    errors.push_back(Invalid(path.Child("namespace"), involved, "does not match event.namespace"));
  }
}

void CheckCoreEvent(const corev1::Event& object, FieldErrors& errors) {
  CheckEventPlace(object.metadata().namespace_(), object.involved_object().namespace_(),
                  Path("involvedObject"), errors);
}

void CheckEvent(const eventsv1::Event& object, FieldErrors& errors) {
  CheckEventPlace(object.metadata().namespace_(), object.regarding().namespace_(), Path("regarding"), errors);
  if (!object.has_event_time()) errors.push_back(Required(Path("eventTime")));
  CheckName(object.reporting_controller(), CheckQualifiedName, Path("reportingController"), errors);
  if (object.reporting_instance().empty()) errors.push_back(Required(Path("reportingInstance")));
  if (object.action().empty()) errors.push_back(Required(Path("action")));
  if (object.reason().empty()) errors.push_back(Required(Path("reason")));
  if (object.note().size() > 1024) errors.push_back(Invalid(Path("note"), "", "can have at most 1024 bytes"));
}

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
}

void CheckPriorityClass(const schedulingv1::PriorityClass& object, FieldErrors& errors) {
  const std::string& name = object.metadata().name();
  const bool is_system = name == "system-node-critical" || name == "system-cluster-critical";
  if (!is_system && name.starts_with("system-")) {
    const Path metadata("metadata");
    errors.push_back(
        Forbidden(metadata.Child("name"),
                  "priority class names with 'system-' prefix are reserved for system use only. error: "
                  "not a known system priority class"));
  }
  if (!is_system && object.value() > kHighestUserPriority) {
    errors.push_back(Forbidden(
        Path("value"),
        fmt::format("maximum allowed value of a user defined priority is {}", kHighestUserPriority)));
  }
  if (object.has_preemption_policy()) {
    CheckEnum(object.preemption_policy(), {"PreemptLowerPriority", "Never"}, Path("preemptionPolicy"),
              errors);
  }
}

void CheckPriorityClassUpdate(const schedulingv1::PriorityClass& object,
                              const schedulingv1::PriorityClass& old, FieldErrors& errors) {
  if (object.value() != old.value())
    errors.push_back(Forbidden(Path("value"), "may not be changed in an update."));
  CheckImmutable(object.preemption_policy(), old.preemption_policy(), Path("preemptionPolicy"), errors);
}

}  // namespace

void RegisterConfigRules(RuleTable& table) {
  table.Add<corev1::ConfigMap, CheckConfigMap>();
  table.AddUpdate<corev1::ConfigMap, CheckConfigMapUpdate>();
  table.Add<corev1::Secret, CheckSecret>();
  table.AddUpdate<corev1::Secret, CheckSecretUpdate>();
  table.Add<corev1::Namespace, CheckNamespaceObject>().name = CheckDns1123Label;
  table.Add<corev1::ServiceAccount, CheckServiceAccount>();
  table.Add<corev1::Event, CheckCoreEvent>();
  table.Add<eventsv1::Event, CheckEvent>();
  table.Add<coordinationv1::Lease, CheckLease>();
  table.Add<schedulingv1::PriorityClass, CheckPriorityClass>();
  table.AddUpdate<schedulingv1::PriorityClass, CheckPriorityClassUpdate>();
}

}  // namespace keelson::k8s
