#include "kubelet/container/network_files.h"

#include <algorithm>
#include <sstream>

#include "lib/base/text.h"

namespace keelson::kubelet {

namespace {

constexpr size_t kMaxServers = 3, kMaxSearches = 32, kMaxSearchBytes = 2048, kMaxHostname = 63, kMaxFqdn = 64;

void AddUnique(std::vector<std::string>& list, const std::string& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// An option replaces one of the same name.
void SetOption(std::vector<std::string>& options, const std::string& name, const std::string& value) {
  std::string text = value.empty() ? name : name + ":" + value;
  for (std::string& option : options) {
    if (option.substr(0, option.find(':')) != name) continue;
    option = text;
    return;
  }
  options.push_back(text);
}

void Merge(const corev1::PodDNSConfig& config, DnsConfig& out) {
  for (const std::string& server : config.nameservers()) AddUnique(out.servers, server);
  for (const std::string& search : config.searches()) AddUnique(out.searches, search);
  for (const auto& option : config.options()) SetOption(out.options, option.name(), option.value());
}

// What the resolver takes is less than what people write.
void Cut(DnsConfig& dns) {
  if (dns.servers.size() > kMaxServers) {
    dns.servers.resize(kMaxServers);
    dns.left_out.emplace_back(
        "DNSConfigForming",
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line "
        "is: " +
            Join(dns.servers, " "));
  }
  size_t kept = 0, bytes = 0;
  for (; kept < dns.searches.size() && kept < kMaxSearches; ++kept) {
    bytes += dns.searches[kept].size() + (kept ? 1 : 0);
    if (bytes > kMaxSearchBytes) break;
  }
  if (kept == dns.searches.size()) return;
  dns.searches.resize(kept);
  dns.left_out.emplace_back(
      "DNSConfigForming",
      "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
          Join(dns.searches, " "));
}

}  // namespace

DnsConfig ParseResolvConf(std::string_view text) {
  DnsConfig out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    std::istringstream words(line);
    std::string keyword, word;
    words >> keyword;
    if (keyword == "nameserver" && words >> word) out.servers.push_back(word);
    if (keyword == "search") {
      out.searches.clear();
      while (words >> word) {
        if (word.size() > 1 && word.back() == '.') word.pop_back();
        out.searches.push_back(word);
      }
    }
    if (keyword == "options") {
      out.options.clear();
      while (words >> word) out.options.push_back(word);
    }
  }
  return out;
}

DnsConfig PodDns(const corev1::Pod& pod, const NodeContext& node, const DnsConfig& host) {
  const corev1::PodSpec& spec = pod.spec();
  const std::string& policy = spec.dns_policy();
  bool cluster = policy == "ClusterFirstWithHostNet" ||
                 ((policy.empty() || policy == "ClusterFirst") && !spec.host_network());
  DnsConfig out;
  if (policy == "None") {
    // dnsConfig alone
  } else if (cluster && !node.cluster_dns.empty()) {
    out.servers = node.cluster_dns;
    if (!node.cluster_domain.empty()) {
      out.searches = {pod.metadata().namespace_() + ".svc." + node.cluster_domain,
                      "svc." + node.cluster_domain, node.cluster_domain};
    }
    for (const std::string& search : host.searches) AddUnique(out.searches, search);
    out.options = {"ndots:5"};
  } else {
    out = host;
  }
  if (spec.has_dns_config()) Merge(spec.dns_config(), out);
  Cut(out);
  if (cluster && node.cluster_dns.empty()) {
    out.left_out.emplace_back(
        "MissingClusterDNS", "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"" +
                                 (policy.empty() ? "ClusterFirst" : policy) +
                                 "\" policy. Falling back to \"Default\" policy.");
  }
  return out;
}

Result<> CheckHostname(const std::string& hostname) {
  if (hostname.size() <= kMaxFqdn) return {};
  return Error(Code::kInvalid, "Failed to construct FQDN from Pod hostname and cluster domain, FQDN " +
                                   hostname + " is too long (" + std::to_string(kMaxFqdn) +
                                   " characters is the max, " + std::to_string(hostname.size()) +
                                   " characters requested)");
}

std::string PodHostname(const corev1::Pod& pod, const NodeContext& node, std::string* domain) {
  const corev1::PodSpec& spec = pod.spec();
  std::string name = !spec.hostname().empty() ? spec.hostname() : pod.metadata().name();
  if (name.size() > kMaxHostname) {
    name.resize(kMaxHostname);
    while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  }
  std::string suffix;
  if (!spec.subdomain().empty()) {
    suffix = spec.subdomain() + "." + pod.metadata().namespace_() + ".svc." + node.cluster_domain;
  }
  if (spec.has_hostname_override()) {
    name = spec.hostname_override();
    suffix.clear();
  }
  if (domain) *domain = suffix;
  if (spec.host_network() && !spec.has_hostname_override()) return node.node_name;
  if (spec.set_hostname_as_fqdn() && !suffix.empty()) return name + "." + suffix;
  return name;
}

std::string EtcHosts(const corev1::Pod& pod, const NodeContext& node, const std::vector<std::string>& pod_ips,
                     std::string_view host_file) {
  std::string out;
  if (pod.spec().host_network()) {
    out = "# Kubernetes-managed hosts file (host network).\n" + std::string(host_file);
    if (!out.empty() && out.back() != '\n') out += "\n";
  } else {
    out =
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n";
    std::string domain;
    std::string hostname = PodHostname(pod, node, &domain);
    std::string shorter = domain.empty() ? hostname : hostname.substr(0, hostname.find('.'));
    for (const std::string& ip : pod_ips) {
      out += ip + "\t" + (domain.empty() ? "" : shorter + "." + domain + "\t") + shorter + "\n";
    }
  }
  if (pod.spec().host_aliases_size() > 0) out += "\n# Entries added by HostAliases.\n";
  for (const auto& alias : pod.spec().host_aliases()) {
    out += alias.ip();
    for (const std::string& name : alias.hostnames()) out += "\t" + name;
    out += "\n";
  }
  return out;
}

}  // namespace keelson::kubelet
