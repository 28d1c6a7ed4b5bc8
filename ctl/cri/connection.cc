#include "ctl/cri/connection.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>

#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

constexpr char kDefaultConfig[] = "/etc/crictl.yaml";
constexpr const char* kDefaultSockets[] = {"/run/containerd/containerd.sock", "/run/crio/crio.sock",
                                           "/var/run/cri-dockerd.sock"};

Result<std::string> SocketOf(const std::string& endpoint) {
  constexpr std::string_view kScheme = "unix://";
  if (endpoint.starts_with(kScheme)) return endpoint.substr(kScheme.size());
  if (endpoint.starts_with("/")) return endpoint;
  return Error(Code::kInvalid, "endpoint \"" + endpoint + "\" is not a Unix socket (unix:///run/...)");
}

Result<> ReadKey(const std::string& key, const YAML::Node& value, CriConfig& config) {
  if (value.IsNull()) return {};
  if (key == "runtime-endpoint") {
    config.runtime_endpoint = value.as<std::string>();
  } else if (key == "image-endpoint") {
    config.image_endpoint = value.as<std::string>();
  } else if (key == "timeout") {
    config.timeout = std::chrono::seconds(std::max(0, value.as<int>()));
  } else if (key == "debug") {
    config.debug = value.as<bool>();
  } else if (key == "pull-image-on-create") {
    config.pull_image_on_create = value.as<bool>();
  } else if (key == "disable-pull-on-run") {
    config.disable_pull_on_run = value.as<bool>();
  } else {
    return Error(Code::kInvalid, "Config option '" + key + "' is not valid");
  }
  return {};
}

}  // namespace

Result<CriConfig> ParseCriConfig(std::string_view yaml) {
  CriConfig config;
  try {
    const YAML::Node document = YAML::Load(std::string(yaml));
    if (document.IsNull()) return config;
    if (!document.IsMap()) return Error(Code::kInvalid, "not a map of options");
    for (const auto& item : document) {
      KEELSON_RETURN_IF_ERROR(ReadKey(item.first.as<std::string>(), item.second, config));
    }
  } catch (const YAML::Exception& e) {
    return Error(Code::kInvalid, e.what());
  }
  return config;
}

Result<CriConnection> PlanCriConnection(const CriFlags& flags, const ReadEnvironment& environment,
                                        const CriConfig& file) {
  auto first_of = [&](const std::optional<std::string>& flag, const char* variable,
                      const std::string& from_file) {
    if (flag) return *flag;
    const std::optional<std::string> set = environment(variable);
    return set && !set->empty() ? *set : from_file;
  };
  CriConnection out;
  const std::string runtime =
      first_of(flags.runtime_endpoint, "CONTAINER_RUNTIME_ENDPOINT", file.runtime_endpoint);
  const std::string image = first_of(flags.image_endpoint, "IMAGE_SERVICE_ENDPOINT", file.image_endpoint);
  if (runtime.empty()) {
    if (flags.runtime_endpoint) return Error(Code::kInvalid, "--runtime-endpoint is not set");
    out.runtime_sockets.assign(std::begin(kDefaultSockets), std::end(kDefaultSockets));
  } else {
    KEELSON_ASSIGN_OR_RETURN(std::string socket, SocketOf(runtime));
    out.runtime_sockets = {std::move(socket)};
  }
  if (image.empty()) {
    out.image_sockets = out.runtime_sockets;
  } else {
    KEELSON_ASSIGN_OR_RETURN(std::string socket, SocketOf(image));
    out.image_sockets = {std::move(socket)};
  }
  if (flags.timeout && flags.timeout->count() > 0) {
    out.timeout = std::max(std::chrono::milliseconds(1000),
                           std::chrono::duration_cast<std::chrono::milliseconds>(*flags.timeout));
  } else if (file.timeout.count() > 0) {
    out.timeout = file.timeout;
  }
  out.debug = flags.debug.value_or(file.debug);
  out.pull_image_on_create = file.pull_image_on_create;
  out.disable_pull_on_run = file.disable_pull_on_run;
  return out;
}

Result<CriConnection> ReadCriConnection(const CriFlags& flags) {
  const ReadEnvironment environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  std::optional<std::string> path = flags.config ? flags.config : environment("CRI_CONFIG_FILE");
  const bool named = path && !path->empty();
  if (!named) path = kDefaultConfig;
  CriConfig file;
  const Result<std::string> text = ReadFile(*path);
  if (!text && (named || !text.error().Is(Code::kNotFound))) {
    return text.error().Wrap("load config file");
  }
  if (text) {
    const Result<CriConfig> parsed = ParseCriConfig(*text);
    if (!parsed) return parsed.error().Wrap("load config file " + *path);
    file = *parsed;
  }
  return PlanCriConnection(flags, environment, file);
}

}  // namespace keelson::ctl
