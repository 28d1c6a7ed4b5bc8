#include "ctl/etcd/settings.h"

#include <map>
#include <optional>

#include "ctl/host/paths.h"
#include "lib/base/file.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

// systemd's form (systemd.exec(5)), as far as these files use it: NAME=VALUE or NAME="VALUE" on one line.
void ReadVariables(const std::string& text, std::map<std::string, std::string>& out) {
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    const size_t equals = line.find('=');
    if (line.empty() || line[0] == '#' || equals == line.npos) continue;
    std::string_view value = line.substr(equals + 1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    out[std::string(line.substr(0, equals))] = value;
  }
}

struct Credentials {
  std::string ca_file, certificate_file, key_file;
};

Result<etcd::Access> Load(const Host& host, const Credentials& files) {
  etcd::Access out;
  for (const auto& [path, pem] :
       {std::pair(&files.ca_file, &out.ca_pem), std::pair(&files.certificate_file, &out.certificate_pem),
        std::pair(&files.key_file, &out.key_pem)}) {
    if (path->empty()) continue;
    KEELSON_ASSIGN_OR_RETURN(*pem, host.Read(*path));
  }
  return out;
}

// Of the certificates that this machine has for etcd's clients.
Credentials CredentialsOf(const Host& host, const EtcdSettings& settings) {
  if (!settings.servers.empty()) {
    return {settings.ca_file, settings.certificate_file, settings.key_file};
  }
  const std::string pki = std::string(paths::kPki) + "/etcd", own = std::string(paths::kEtcdData) + "/pki";
  if (!settings.address.empty() || !host.Exists(own + "/ca.crt")) {
    // A certificates' directory of the administrator's choice shows in the flags.
    const std::string client = pki + "/healthcheck-client";
    if (host.Exists(client + ".crt")) return {pki + "/ca.crt", client + ".crt", client + ".key"};
    return {settings.ca_file, settings.certificate_file, settings.key_file};
  }
  return {own + "/ca.crt", own + "/client.crt", own + "/client.key"};
}

}  // namespace

std::vector<std::string> ControlPlaneFlags(const std::vector<std::string>& files) {
  std::map<std::string, std::string> variables;
  for (const std::string& text : files) ReadVariables(text, variables);
  std::vector<std::string> out;
  for (const char* variable :
       {"KUBE_CONTROLPLANE_PKI_ARGS", "KUBE_CONTROLPLANE_CLUSTER_ARGS", "KUBE_CONTROLPLANE_ARGS"}) {
    for (std::string_view word : SplitWords(variables[variable])) out.emplace_back(word);
  }
  return out;
}

std::vector<std::string> ControlPlaneFiles(const Host& host) {
  std::vector<std::string> out;
  for (const char* path : {"/usr/lib/keelson/kube-controlplane.env", paths::kControlPlaneEnv,
                           "/etc/default/kube-controlplane", "/etc/sysconfig/kube-controlplane"}) {
    if (!host.Exists(path)) continue;
    if (Result<std::string> text = host.Read(path)) out.push_back(*std::move(text));
  }
  return out;
}

EtcdSettings ParseEtcdSettings(const std::vector<std::string>& files) {
  EtcdSettings out;
  for (const std::string& word : ControlPlaneFlags(files)) {
    out.found = true;
    const auto take = [&](std::string_view name) -> std::optional<std::string> {
      if (word.size() <= name.size() || !word.starts_with(name) || word[name.size()] != '=') return {};
      return word.substr(name.size() + 1);
    };
    if (auto value = take("--etcd-servers")) out.servers = SplitList(*value);
    if (auto value = take("--etcd-cafile")) out.ca_file = *value;
    if (auto value = take("--etcd-certfile")) out.certificate_file = *value;
    if (auto value = take("--etcd-keyfile")) out.key_file = *value;
    if (auto value = take("--etcd-address")) out.address = *value;
    if (auto value = take("--etcd-name")) out.name = *value;
  }
  return out;
}

EtcdSettings ReadEtcdSettings(const Host& host) { return ParseEtcdSettings(ControlPlaneFiles(host)); }

std::string EtcdUrl(const std::string& address, uint16_t port) {
  const bool v6 = address.find(':') != std::string::npos;
  return "https://" + (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port);
}

Result<EtcdAccess> FindEtcd(const Host& host, const EtcdOptions& options) {
  const EtcdSettings settings = ReadEtcdSettings(host);
  Credentials files = CredentialsOf(host, settings);
  EtcdAccess out;
  out.chosen = !options.endpoints.empty();
  if (out.chosen) {
    out.endpoints = options.endpoints;
    for (std::string& endpoint : out.endpoints) {
      // etcdctl's short form.
      if (endpoint.find("://") == std::string::npos) endpoint.insert(0, "http://");
    }
  } else if (!settings.servers.empty()) {
    out.endpoints = settings.servers;
  } else if (!settings.address.empty()) {
    out.endpoints = {EtcdUrl(settings.address, kEtcdClientPort)};
  } else {
    const std::string socket = std::string(paths::kEtcdData) + "/etcd:0";
    if (!host.Exists(socket)) {
      return Error(Code::kNotFound,
                   "no etcd is found on this machine: kube-controlplane's flags name none, and " + socket +
                       " does not exist because kube-controlplane does not run; give --endpoints");
    }
    out.endpoints = {"unix://" + host.RealPath(socket)};
  }
  // Files that the command line names are this machine's own, wherever --rootfs is.
  Result<etcd::Access> credentials = Load(host, files);
  const bool given =
      !options.ca_file.empty() || !options.certificate_file.empty() || !options.key_file.empty();
  if (!credentials && !given) return credentials.error().Wrap("credentials for etcd");
  if (credentials && !given) out.credentials = *std::move(credentials);
  for (const auto& [path, pem] : {std::pair(&options.ca_file, &out.credentials.ca_pem),
                                  std::pair(&options.certificate_file, &out.credentials.certificate_pem),
                                  std::pair(&options.key_file, &out.credentials.key_pem)}) {
    if (path->empty()) continue;
    KEELSON_ASSIGN_OR_RETURN(*pem, ReadFile(*path));
  }
  return out;
}

}  // namespace keelson::ctl
