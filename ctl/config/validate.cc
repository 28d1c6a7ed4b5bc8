#include "ctl/config/validate.h"

#include <algorithm>

#include "lib/api/names.h"
#include "lib/base/ip.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

constexpr std::string_view kAlgorithms[] = {"ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"};

void CheckSubnets(const std::string& text, const std::string& field, ConfigProblems& problems) {
  const std::vector<std::string> subnets = SplitList(text);
  if (subnets.empty() || subnets.size() > 2) {
    return problems.push_back(InvalidField(field, text,
                                           "expected one (IPv4 or IPv6) CIDR or two CIDRs from each "
                                           "family for dual-stack networking"));
  }
  std::vector<IpPrefix> parsed;
  for (const std::string& subnet : subnets) {
    const auto prefix = IpPrefix::Parse(subnet);
    if (!prefix) return problems.push_back(InvalidField(field, text, "couldn't parse subnet"));
    parsed.push_back(*prefix);
    // Room for the cluster's DNS, the tenth address.
    if (prefix->address().bits() - prefix->length() < 4) {
      problems.push_back(InvalidField(field, subnet, "subnet is too small"));
    }
  }
  if (parsed.size() == 2 && parsed[0].is_v4() == parsed[1].is_v4()) {
    problems.push_back(InvalidField(field, text,
                                    "expected one (IPv4 or IPv6) CIDR or two CIDRs from each family for "
                                    "dual-stack networking"));
  }
}

void CheckCertificateNames(const std::vector<std::string>& names, ConfigProblems& problems) {
  for (const std::string& name : names) {
    const std::string_view plain = name.starts_with("*.") ? std::string_view(name).substr(2) : name;
    if (IpAddress::Parse(name) || api::CheckDns1123Subdomain(plain).empty()) continue;
    problems.push_back(
        InvalidField("apiServer.certSANs", name,
                     "altname is not a valid IP address, DNS label or a DNS label with subdomain "
                     "wildcards: " +
                         Join(api::CheckDns1123Subdomain(plain), "; ")));
  }
}

void CheckExternalEtcd(const ExternalEtcd& etcd, ConfigProblems& problems) {
  if (etcd.endpoints.empty()) {
    problems.push_back(InvalidField("etcd.external.endpoints", "", "at least one endpoint must be set"));
  }
  if (!etcd.ca_file.empty() && etcd.certificate_file.empty() != etcd.key_file.empty()) {
    problems.push_back(
        InvalidField("etcd.external", "",
                     "either both or none of .Etcd.External.CertFile and .Etcd.External.KeyFile must "
                     "be set"));
  }
  for (const std::string& endpoint : etcd.endpoints) {
    const bool secure = !etcd.ca_file.empty();
    if (!endpoint.starts_with(secure ? "https://" : "http")) {
      problems.push_back(
          InvalidField("etcd.external.endpoints", endpoint, "the URL must be using the HTTPS scheme"));
    }
  }
  for (const auto& [field, file] :
       {std::pair("caFile", &etcd.ca_file), std::pair("certFile", &etcd.certificate_file),
        std::pair("keyFile", &etcd.key_file)}) {
    if (!file->empty() && !file->starts_with('/')) {
      problems.push_back(
          InvalidField(std::string("etcd.external.") + field, *file, "must be an absolute path"));
    }
  }
}

}  // namespace

std::string InvalidField(const std::string& field, const std::string& value, const std::string& why) {
  return field + ": Invalid value: \"" + value + "\": " + why;
}

void CheckArguments(const std::vector<Argument>& arguments, const std::string& field,
                    ConfigProblems& problems) {
  for (const Argument& argument : arguments) {
    // systemd splits the variables of a unit at white space, and knows no quotes there.
    for (const std::string* part : {&argument.name, &argument.value}) {
      if (part->find_first_of(" \t\n\r\"'\\$") == std::string::npos) continue;
      problems.push_back(
          InvalidField(field, *part,
                       "white space, quotes, backslashes and dollar signs cannot be in the environment "
                       "file of a unit"));
    }
  }
}

void CheckCluster(const ClusterConfiguration& cluster, ConfigProblems& problems) {
  CheckSubnets(cluster.service_subnet, "networking.serviceSubnet", problems);
  CheckSubnets(cluster.pod_subnet, "networking.podSubnet", problems);
  for (const std::string& why : api::CheckDns1123Subdomain(cluster.dns_domain)) {
    problems.push_back(InvalidField("networking.dnsDomain", cluster.dns_domain, why));
  }
  if (!cluster.certificates_dir.starts_with('/')) {
    problems.push_back(InvalidField("certificatesDir", cluster.certificates_dir, "path is not absolute"));
  }
  const auto* algorithm =
      std::find(std::begin(kAlgorithms), std::end(kAlgorithms), cluster.encryption_algorithm);
  if (algorithm == std::end(kAlgorithms)) {
    problems.push_back(
        InvalidField("encryptionAlgorithm", cluster.encryption_algorithm,
                     "algorithm type not supported. Must be one of [" + Join(kAlgorithms, " ") + "]"));
  }
  for (const auto& [field, life] : {std::pair("certificateValidityPeriod", cluster.certificate_validity),
                                    std::pair("caCertificateValidityPeriod", cluster.ca_validity)}) {
    if (life.count() < 0) {
      problems.push_back(InvalidField(field, std::to_string(life.count()) + "s", "must not be negative"));
    }
  }
  CheckCertificateNames(cluster.certificate_names, problems);
  CheckArguments(cluster.api_server_args, "apiServer.extraArgs", problems);
  CheckArguments(cluster.controller_manager_args, "controllerManager.extraArgs", problems);
  CheckArguments(cluster.scheduler_args, "scheduler.extraArgs", problems);
  if (cluster.external_etcd) CheckExternalEtcd(*cluster.external_etcd, problems);
}

void CheckNode(const NodeRegistration& node, ConfigProblems& problems) {
  if (node.name.empty()) {
    problems.emplace_back(
        "nodeRegistration.name: Required value: --node-name or .nodeRegistration.name in the config "
        "file is a required value. It seems like this value couldn't be automatically detected in "
        "your environment, please specify the desired value using the CLI or config file.");
  }
  for (const std::string& why : api::CheckDns1123Subdomain(node.name)) {
    if (!node.name.empty()) problems.push_back(InvalidField("nodeRegistration.name", node.name, why));
  }
  if (!node.cri_socket.starts_with("unix:///")) {
    problems.push_back(InvalidField("nodeRegistration.criSocket", node.cri_socket,
                                    "only URL scheme \"unix\" is supported, with an absolute path"));
  }
  CheckArguments(node.kubelet_extra_args, "nodeRegistration.kubeletExtraArgs", problems);
}

void CheckToken(const std::string& token, const std::string& field, ConfigProblems& problems) {
  const auto good = [](std::string_view part, size_t size) {
    return part.size() == size && part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == part.npos;
  };
  const size_t dot = token.find('.');
  if (dot != std::string::npos && good(std::string_view(token).substr(0, dot), 6) &&
      good(std::string_view(token).substr(dot + 1), 16)) {
    return;
  }
  problems.push_back(InvalidField(field, token,
                                  "the bootstrap token is invalid: it is not of the form "
                                  "\"\\\\A([a-z0-9]{6})\\\\.([a-z0-9]{16})\\\\z\""));
}

}  // namespace keelson::ctl
