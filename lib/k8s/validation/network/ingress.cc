// Ingresses and their classes.
#include <fmt/format.h>

#include "lib/api/proto/networking_v1.pb.h"
#include "lib/k8s/validation/network/service.h"
#include "lib/k8s/validation/parts.h"
#include "lib/k8s/validation/rule_table.h"

namespace keelson::k8s {

namespace networkingv1 = api::networking::v1;

namespace {

constexpr char kClassAnnotation[] = "kubernetes.io/ingress.class";
constexpr char kNotAnIp[] = "must be a DNS name, not an IP address";
constexpr size_t kControllerBytes = 250;

// What an update may keep because the stored object already has it.
struct Leniency {
  bool secret_names = false, wildcard_rules = false, service_names = false;
};

void CheckHost(const std::string& host, const Path& path, FieldErrors& errors) {
  const bool wildcard = host.find('*') != std::string::npos;
  AddProblems(wildcard ? CheckWildcardDns1123Subdomain(host) : CheckDns1123Subdomain(host), host, path,
              errors);
}

void CheckKindAndName(const std::string& kind, const std::string& name, const Path& path,
                      FieldErrors& errors) {
  CheckName(kind, CheckPathSegmentName, path.Child("kind"), errors);
  CheckName(name, CheckPathSegmentName, path.Child("name"), errors);
}

void CheckResourceBackend(const corev1::TypedLocalObjectReference& reference, const Path& path,
                          FieldErrors& errors) {
  if (reference.has_api_group()) {
    AddProblems(CheckDns1123Subdomain(reference.api_group()), reference.api_group(), path.Child("apiGroup"),
                errors);
  }
  CheckKindAndName(reference.kind(), reference.name(), path, errors);
}

void CheckServiceBackend(const networkingv1::IngressServiceBackend& service, const Leniency& lenient,
                         const Path& path, FieldErrors& errors) {
  const Path place = path.Child("service");
  CheckName(service.name(), lenient.service_names ? CheckDns1123Label : CheckServiceName, place.Child("name"),
            errors);
  const networkingv1::ServiceBackendPort& port = service.port();
  const Path port_path = place.Child("port");
  if (!port.name().empty() && port.number() != 0) {
    errors.push_back(Invalid(path, "", "cannot set both port name & port number"));
  } else if (!port.name().empty()) {
    AddProblems(CheckPortName(port.name()), port.name(), port_path.Child("name"), errors);
  } else if (port.number() != 0) {
    for (const std::string& problem : CheckPortNumber(port.number())) {
      errors.push_back(Invalid(port_path.Child("number"), int64_t{port.number()}, problem));
    }
  } else {
    errors.push_back(Required(path, "port name or number is required"));
  }
}

void CheckBackend(const networkingv1::IngressBackend& backend, const Leniency& lenient, const Path& path,
                  FieldErrors& errors) {
  if (backend.has_resource() && backend.has_service()) {
    errors.push_back(Invalid(path, "", "cannot set both resource and service backends"));
  } else if (backend.has_resource()) {
    CheckResourceBackend(backend.resource(), path.Child("resource"), errors);
  } else if (backend.has_service()) {
    CheckServiceBackend(backend.service(), lenient, path, errors);
  } else {
    errors.push_back(Invalid(path, "", "resource or service backend is required"));
  }
}

void CheckHttpPath(const networkingv1::HTTPIngressPath& entry, const Leniency& lenient, const Path& path,
                   FieldErrors& errors) {
  if (!entry.has_path_type()) {
    errors.push_back(Required(path.Child("pathType"), "pathType must be specified"));
    return;
  }
  const Path place = path.Child("path");
  const std::string& value = entry.path();
  const bool absolute = value.starts_with("/");
  if (entry.path_type() == "Exact" || entry.path_type() == "Prefix") {
    if (!absolute) errors.push_back(Invalid(place, value, "must be an absolute path"));
    for (std::string_view sequence : {"//", "/./", "/../", "%2f", "%2F"}) {
      if (value.find(sequence) != std::string::npos) {
        errors.push_back(Invalid(place, value, fmt::format("must not contain '{}'", sequence)));
      }
    }
    for (std::string_view suffix : {"/..", "/."}) {
      if (value.ends_with(suffix)) {
        errors.push_back(Invalid(place, value, fmt::format("cannot end with '{}'", suffix)));
      }
    }
  } else if (entry.path_type() == "ImplementationSpecific") {
    if (!value.empty() && !absolute) errors.push_back(Invalid(place, value, "must be an absolute path"));
  } else {
    errors.push_back(NotSupported(path.Child("pathType"), entry.path_type(),
                                  {"Exact", "ImplementationSpecific", "Prefix"}));
  }
  CheckBackend(entry.backend(), lenient, path.Child("backend"), errors);
}

void CheckRuleValue(const networkingv1::IngressRuleValue& value, const Leniency& lenient, const Path& path,
                    FieldErrors& errors) {
  if (!value.has_http()) return;
  const Path http = path.Child("http");
  const Path paths = http.Child("paths");
  if (value.http().paths().empty()) errors.push_back(Required(paths));
  for (int i = 0; i < value.http().paths_size(); ++i) {
    CheckHttpPath(value.http().paths(i), lenient, paths.Index(i), errors);
  }
}

void CheckRules(const networkingv1::IngressSpec& spec, const Leniency& lenient, const Path& path,
                FieldErrors& errors) {
  for (int i = 0; i < spec.rules_size(); ++i) {
    const networkingv1::IngressRule& rule = spec.rules(i);
    const Path item = path.Index(i);
    const bool wildcard = rule.host().find('*') != std::string::npos;
    if (!rule.host().empty()) {
      if (CheckIp(rule.host()).empty()) errors.push_back(Invalid(item.Child("host"), rule.host(), kNotAnIp));
      CheckHost(rule.host(), item.Child("host"), errors);
    }
    if (!wildcard || !lenient.wildcard_rules) {
      CheckRuleValue(rule.ingress_rule_value(), lenient, item, errors);
    }
  }
}

void CheckTls(const networkingv1::IngressSpec& spec, const Leniency& lenient, const Path& path,
              FieldErrors& errors) {
  for (int i = 0; i < spec.tls_size(); ++i) {
    const networkingv1::IngressTLS& tls = spec.tls(i);
    const Path item = path.Index(i);
    const Path hosts = item.Child("hosts");
    for (int j = 0; j < tls.hosts_size(); ++j) CheckHost(tls.hosts(j), hosts.Index(j), errors);
    if (!lenient.secret_names && !tls.secret_name().empty()) {
      AddProblems(CheckDns1123Subdomain(tls.secret_name()), tls.secret_name(), item.Child("secretName"),
                  errors);
    }
  }
}

void CheckIngressSpec(const networkingv1::Ingress& object, const Leniency& lenient, FieldErrors& errors) {
  const Path path("spec");
  const networkingv1::IngressSpec& spec = object.spec();
  if (spec.rules().empty() && !spec.has_default_backend()) {
    errors.push_back(InvalidRaw(path, "null", "either `defaultBackend` or `rules` must be specified"));
  }
  if (spec.has_default_backend()) {
    CheckBackend(spec.default_backend(), lenient, path.Child("defaultBackend"), errors);
  }
  CheckRules(spec, lenient, path.Child("rules"), errors);
  CheckTls(spec, lenient, path.Child("tls"), errors);
  if (spec.has_ingress_class_name()) {
    AddProblems(CheckDns1123Subdomain(spec.ingress_class_name()), spec.ingress_class_name(),
                path.Child("ingressClassName"), errors);
  }
}

void CheckIngress(const networkingv1::Ingress& object, FieldErrors& errors) {
  CheckIngressSpec(object, {}, errors);
  const auto annotation = object.metadata().annotations().find(kClassAnnotation);
  if (annotation != object.metadata().annotations().end() && object.spec().has_ingress_class_name() &&
      annotation->second != object.spec().ingress_class_name()) {
    errors.push_back(Invalid(Path("annotations").Child(kClassAnnotation), annotation->second,
                             "must match `ingressClassName` when both are specified"));
  }
}

bool IsRelaxedName(const networkingv1::IngressBackend& backend) {
  const std::string& name = backend.service().name();
  return backend.has_service() && CheckDns1123Label(name).empty() && !CheckDns1035Label(name).empty();
}

Leniency LeniencyOf(const networkingv1::Ingress& old) {
  Leniency lenient;
  for (const networkingv1::IngressTLS& tls : old.spec().tls()) {
    const std::string& name = tls.secret_name();
    lenient.secret_names = lenient.secret_names || (!name.empty() && !CheckDns1123Subdomain(name).empty());
  }
  lenient.service_names = old.spec().has_default_backend() && IsRelaxedName(old.spec().default_backend());
  for (const networkingv1::IngressRule& rule : old.spec().rules()) {
    if (rule.host().find('*') != std::string::npos) {
      FieldErrors found;
      CheckRuleValue(rule.ingress_rule_value(), {}, Path("rules"), found);
      lenient.wildcard_rules = lenient.wildcard_rules || !found.empty();
    }
    for (const auto& entry : rule.ingress_rule_value().http().paths()) {
      lenient.service_names = lenient.service_names || IsRelaxedName(entry.backend());
    }
  }
  return lenient;
}

void CheckIngressUpdate(const networkingv1::Ingress& object, const networkingv1::Ingress& old,
                        FieldErrors& errors) {
  CheckIngressSpec(object, LeniencyOf(old), errors);
}

void CheckIngressStatus(const networkingv1::Ingress& object, const networkingv1::Ingress& old,
                        FieldErrors& errors) {
  const Path status("status");
  const Path balancer = status.Child("loadBalancer");
  const Path list = balancer.Child("ingress");
  Strings known;
  for (const auto& ingress : old.status().load_balancer().ingress()) *known.Add() = ingress.ip();
  for (int i = 0; i < object.status().load_balancer().ingress_size(); ++i) {
    const auto& ingress = object.status().load_balancer().ingress(i);
    const Path item = list.Index(i);
    if (!ingress.ip().empty()) CheckStrictIp(ingress.ip(), known, item.Child("ip"), errors);
    if (ingress.hostname().empty()) continue;
    AddProblems(CheckDns1123Subdomain(ingress.hostname()), ingress.hostname(), item.Child("hostname"),
                errors);
    if (CheckIp(ingress.hostname()).empty()) {
      errors.push_back(Invalid(item.Child("hostname"), ingress.hostname(), kNotAnIp));
    }
  }
}

void CheckParameters(const networkingv1::IngressClassParametersReference& parameters, const Path& path,
                     FieldErrors& errors) {
  if (parameters.has_api_group()) {
    AddProblems(CheckDns1123Subdomain(parameters.api_group()), parameters.api_group(), path.Child("apiGroup"),
                errors);
  }
  CheckKindAndName(parameters.kind(), parameters.name(), path, errors);
  const Path ns = path.Child("namespace");
  if (!parameters.has_scope()) {
    errors.push_back(Required(path.Child("scope")));
  } else if (parameters.scope() == "Namespace") {
    if (!parameters.has_namespace_()) {
      errors.push_back(Required(ns, "`parameters.scope` is set to 'Namespace'"));
    } else {
      AddProblems(CheckDns1123Label(parameters.namespace_()), parameters.namespace_(), ns, errors);
    }
  } else if (parameters.scope() == "Cluster") {
    if (parameters.has_namespace_()) {
      errors.push_back(Forbidden(ns, "`parameters.scope` is set to 'Cluster'"));
    }
  } else {
    errors.push_back(NotSupported(path.Child("scope"), parameters.scope(), {"Cluster", "Namespace"}));
  }
}

void CheckIngressClass(const networkingv1::IngressClass& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path controller = spec.Child("controller");
  if (object.spec().controller().size() > kControllerBytes) {
    errors.push_back(TooLong(controller, kControllerBytes));
  }
  CheckDomainPrefixedPath(object.spec().controller(), controller, errors);
  if (object.spec().has_parameters()) {
    CheckParameters(object.spec().parameters(), spec.Child("parameters"), errors);
  }
}

void CheckIngressClassUpdate(const networkingv1::IngressClass& object, const networkingv1::IngressClass& old,
                             FieldErrors& errors) {
  const Path spec("spec");
  CheckImmutable(object.spec().controller(), old.spec().controller(), spec.Child("controller"), errors);
  CheckIngressClass(object, errors);
}

}  // namespace

void RegisterIngressRules(RuleTable& table) {
  table.Add<networkingv1::Ingress, CheckIngress>();
  table.AddUpdate<networkingv1::Ingress, CheckIngressUpdate>(true);
  table.AddStatus<networkingv1::Ingress, CheckIngressStatus>();
  table.Add<networkingv1::IngressClass, CheckIngressClass>();
  table.AddUpdate<networkingv1::IngressClass, CheckIngressClassUpdate>(true);
}

}  // namespace keelson::k8s
