#include "kubelet/container/env.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "kubelet/container/env_file.h"
#include "kubelet/container/expansion.h"
#include "kubelet/container/field_value.h"
#include "lib/base/text.h"
#include "lib/k8s/text/names.h"

namespace keelson::kubelet {

namespace {

using Values = std::map<std::string, std::string>;

std::string VariableName(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// An IPv6 address is put into brackets.
std::string HostPort(const std::string& ip, int32_t port) {
  return (ip.find(':') == std::string::npos ? ip : "[" + ip + "]") + ":" + std::to_string(port);
}

void AddService(const corev1::Service& service, Values& out) {
  const std::string& ip = service.spec().cluster_ip();
  std::string name = VariableName(service.metadata().name());
  out[name + "_SERVICE_HOST"] = ip;
  bool first = true;
  for (const auto& port : service.spec().ports()) {
    std::string number = std::to_string(port.port());
    std::string protocol = port.protocol().empty() ? "TCP" : port.protocol();
    std::string url = Lower(protocol) + "://" + HostPort(ip, port.port());
    if (first) {
      out[name + "_SERVICE_PORT"] = number;
      out[name + "_PORT"] = url;
      first = false;
    }
    if (!port.name().empty()) out[name + "_SERVICE_PORT_" + VariableName(port.name())] = number;
    std::string prefix = name + "_PORT_" + number + "_" + VariableName(protocol);
    out[prefix] = url;
    out[prefix + "_PROTO"] = Lower(protocol);
    out[prefix + "_PORT"] = number;
    out[prefix + "_ADDR"] = ip;
  }
}

// The API server's Service is in every pod; the others only where service links are on (the default).
Values PodServices(const corev1::Pod& pod, ObjectSource& objects) {
  std::vector<std::shared_ptr<const corev1::Service>> services;
  for (auto& service : objects.Services("default")) {
    if (service->metadata().name() == "kubernetes") services.push_back(service);
  }
  bool links = !pod.spec().has_enable_service_links() || pod.spec().enable_service_links();
  if (links) {
    for (auto& service : objects.Services(pod.metadata().namespace_())) services.push_back(service);
  }
  return ServiceEnv(services);
}

class Builder {
 public:
  Builder(const corev1::Pod& pod, const corev1::Container& container, ObjectSource& objects,
          const NodeContext& node, const VolumePaths& volumes)
      : pod_(pod),
        container_(container),
        objects_(objects),
        node_(node),
        volumes_(volumes),
        services_(PodServices(pod, objects)) {}

  Result<Env> Build() {
    for (const auto& source : container_.env_from()) KEELSON_RETURN_IF_ERROR(AddFrom(source));
    for (const auto& variable : container_.env()) KEELSON_RETURN_IF_ERROR(Add(variable));
    Env out(values_.begin(), values_.end());
    for (const auto& [name, value] : services_) {
      if (!values_.count(name)) out.emplace_back(name, value);
    }
    return out;
  }

 private:
  Result<> AddFrom(const corev1::EnvFromSource& source) {
    if (source.has_config_map_ref()) {
      const auto& ref = source.config_map_ref();
      auto map = objects_.GetConfigMap(pod_.metadata().namespace_(), ref.local_object_reference().name());
      if (!map) return Absent(map.error(), ref.optional(), "configmap", ref.local_object_reference().name());
      for (const auto& [key, value] : (*map)->data()) Set(source.prefix() + key, value);
    }
    if (source.has_secret_ref()) {
      const auto& ref = source.secret_ref();
      auto secret = objects_.GetSecret(pod_.metadata().namespace_(), ref.local_object_reference().name());
      if (!secret) {
        return Absent(secret.error(), ref.optional(), "secret", ref.local_object_reference().name());
      }
      for (const auto& [key, value] : (*secret)->data()) Set(source.prefix() + key, value);
    }
    return {};
  }

  // Keys that make no variable name are left out, as documented for envFrom.
  void Set(const std::string& name, const std::string& value) {
    if (k8s::CheckEnvVarName(name).empty()) values_[name] = value;
  }

  Result<> Absent(const Error& error, bool optional, const std::string& what, const std::string& name) {
    if (!error.Is(Code::kNotFound)) return error;
    if (optional) return {};
    return Error(Code::kInvalid, what + " \"" + name + "\" not found");
  }

  Result<> Add(const corev1::EnvVar& variable) {
    if (!variable.has_value_from()) {
      values_[variable.name()] =
          Expand(variable.value(), [this](const std::string& name) { return Find(name); });
      return {};
    }
    const corev1::EnvVarSource& source = variable.value_from();
    if (source.has_field_ref()) {
      KEELSON_ASSIGN_OR_RETURN(values_[variable.name()], FieldValue(pod_, source.field_ref().field_path()));
    } else if (source.has_resource_field_ref()) {
      KEELSON_ASSIGN_OR_RETURN(values_[variable.name()], ResourceValue(pod_, source.resource_field_ref(),
                                                                       container_.name(), node_.allocatable));
    } else if (source.has_config_map_key_ref()) {
      return AddConfigMapKey(variable.name(), source.config_map_key_ref());
    } else if (source.has_secret_key_ref()) {
      return AddSecretKey(variable.name(), source.secret_key_ref());
    } else if (source.has_file_key_ref()) {
      return AddFileKey(variable.name(), source.file_key_ref());
    }
    return {};
  }

  Result<> AddConfigMapKey(const std::string& variable, const corev1::ConfigMapKeySelector& ref) {
    const std::string& name = ref.local_object_reference().name();
    auto map = objects_.GetConfigMap(pod_.metadata().namespace_(), name);
    if (!map) return Absent(map.error(), ref.optional(), "configmap", name);
    auto it = (*map)->data().find(ref.key());
    if (it != (*map)->data().end()) {
      values_[variable] = it->second;
      return {};
    }
    return NoKey(ref.key(), "ConfigMap", name, ref.optional());
  }

  Result<> AddSecretKey(const std::string& variable, const corev1::SecretKeySelector& ref) {
    const std::string& name = ref.local_object_reference().name();
    auto secret = objects_.GetSecret(pod_.metadata().namespace_(), name);
    if (!secret) return Absent(secret.error(), ref.optional(), "secret", name);
    auto it = (*secret)->data().find(ref.key());
    if (it != (*secret)->data().end()) {
      values_[variable] = it->second;
      return {};
    }
    return NoKey(ref.key(), "Secret", name, ref.optional());
  }

  Result<> AddFileKey(const std::string& variable, const corev1::FileKeySelector& ref) {
    auto volume = volumes_.find(ref.volume_name());
    if (volume == volumes_.end()) {
      return Error(Code::kInvalid,
                   "cannot find the volume \"" + ref.volume_name() + "\" referenced by FileKeyRef");
    }
    auto value = ReadEnvFile(volume->second.path, ref.path(), ref.key());
    if (!value && ref.optional() && value.error().Is(Code::kNotFound)) return {};
    if (!value) return value.error().Wrap("couldn't parse env file");
    if (*value) {
      values_[variable] = std::move(**value);
    } else if (!ref.optional()) {
      return Error(Code::kInvalid,
                   "environment variable key \"" + ref.key() + "\" not found in file \"" + ref.path() + "\"");
    }
    return {};
  }

  Result<> NoKey(const std::string& key, const std::string& what, const std::string& name, bool optional) {
    if (optional) return {};
    return Error(Code::kInvalid, "couldn't find key " + key + " in " + what + " " +
                                     pod_.metadata().namespace_() + "/" + name);
  }

  std::optional<std::string> Find(const std::string& name) const {
    if (auto it = values_.find(name); it != values_.end()) return it->second;
    if (auto it = services_.find(name); it != services_.end()) return it->second;
    return std::nullopt;
  }

  const corev1::Pod& pod_;
  const corev1::Container& container_;
  ObjectSource& objects_;
  const NodeContext& node_;
  const VolumePaths& volumes_;
  Values services_;
  Values values_;
};

}  // namespace

Values ServiceEnv(const std::vector<std::shared_ptr<const corev1::Service>>& services) {
  Values out;
  for (const auto& service : services) {
    const std::string& ip = service->spec().cluster_ip();
    if (!ip.empty() && ip != "None") AddService(*service, out);
  }
  return out;
}

Result<Env> BuildEnv(const corev1::Pod& pod, const corev1::Container& container, ObjectSource& objects,
                     const NodeContext& node, const VolumePaths& volumes) {
  return Builder(pod, container, objects, node, volumes).Build();
}

}  // namespace keelson::kubelet
