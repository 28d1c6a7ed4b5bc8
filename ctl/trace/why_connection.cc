// nodectl why connection NAMESPACE/POD NAMESPACE/POD:PORT|ADDRESS:PORT|DOMAIN:PORT [--protocol tcp]
#include <netinet/in.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>

#include "ctl/inspect_verbs.h"
#include "ctl/trace/connection_report.h"
#include "ctl/trace/domain_names.h"
#include "ctl/trace/this_node.h"
#include "lib/dataplane/domain_sets.h"

namespace keelson::ctl {
namespace {

struct Options {
  std::string source, destination;
  std::string protocol = "tcp";
  ProxySettings proxy;
};

Error Usage(const std::string& what) { return Error(Code::kInvalid, what); }

Result<corev1::Pod> GetPod(const client::RestClient& api, const std::string& text) {
  size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == text.size()) {
    return Usage("want NAMESPACE/POD, not \"" + text + "\"");
  }
  KEELSON_ASSIGN_OR_RETURN(corev1::Pod pod,
                           api.Get<corev1::Pod>(text.substr(0, slash), text.substr(slash + 1)));
  if (pod.spec().node_name().empty()) return Usage("pod " + text + " is on no node yet");
  if (pod.status().pod_ips().empty()) return Usage("pod " + text + " has no address yet");
  return pod;
}

std::optional<uint16_t> NumberOf(const std::string& text) {
  uint16_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number > 0) return number;
  return std::nullopt;
}

// A number, or what a container calls the port.
Result<uint16_t> PortOf(const corev1::Pod& pod, const std::string& text, const std::string& protocol) {
  if (std::optional<uint16_t> number = NumberOf(text)) return *number;
  for (const auto& container : pod.spec().containers()) {
    for (const auto& port : container.ports()) {
      const std::string& of = port.protocol().empty() ? "TCP" : port.protocol();
      if (port.name() == text && of == protocol) return static_cast<uint16_t>(port.container_port());
    }
  }
  return Usage("the pod has no " + protocol + " port \"" + text + "\"");
}

// Where the connection leads.
struct Target {
  std::string name, node;  // as in Connection
  uint16_t port = 0;
  std::vector<IpAddress> addresses;
  std::vector<std::string> notes;
};

Result<Target> PodTarget(const client::RestClient& api, const std::string& name, const std::string& port,
                         const std::string& protocol) {
  KEELSON_ASSIGN_OR_RETURN(corev1::Pod pod, GetPod(api, name));
  Target out{.name = name, .node = pod.spec().node_name(), .addresses = AddressesOf(pod), .notes = {}};
  KEELSON_ASSIGN_OR_RETURN(out.port, PortOf(pod, port, protocol));
  return out;
}

// An address, or a domain name: then the addresses that network policies know of it.
Result<Target> OutsideTarget(const NodeView& node, std::string name, const std::string& port) {
  const std::optional<uint16_t> number = NumberOf(port);
  if (!number) return Usage("want the number of a port, not \"" + port + "\"");
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  Target out{.name = name, .node = {}, .port = *number, .addresses = {}, .notes = {}};
  if (Result<IpAddress> address = IpAddress::Parse(name)) {
    out.addresses = {*address};
    out.notes = NotesOfAddress(*address, AllDomains(node.tables()));
    return out;
  }
  const std::optional<std::string> domain = dataplane::DomainPattern(name);
  if (!domain || domain->starts_with('*')) {
    return Usage("want NAMESPACE/POD, an address or a domain name, not \"" + name + "\"");
  }
  const std::vector<KnownDomain> known = DomainsOf(node.tables(), *domain);
  out.notes = NotesOfName(*domain, known);
  for (const KnownDomain& one : known) {
    out.addresses.insert(out.addresses.end(), one.addresses.begin(), one.addresses.end());
  }
  std::sort(out.addresses.begin(), out.addresses.end());
  out.addresses.erase(std::unique(out.addresses.begin(), out.addresses.end()), out.addresses.end());
  return out;
}

Result<ConnectionReport> Explain(const client::RestClient& api, const Options& options) {
  size_t colon = options.destination.rfind(':');
  if (colon == std::string::npos) {
    return Usage("want NAMESPACE/POD:PORT, ADDRESS:PORT or DOMAIN:PORT, not \"" + options.destination + "\"");
  }
  const std::string name = options.destination.substr(0, colon), port = options.destination.substr(colon + 1);
  const std::string protocol = options.protocol == "udp"    ? "UDP"
                               : options.protocol == "sctp" ? "SCTP"
                                                            : "TCP";
  KEELSON_ASSIGN_OR_RETURN(corev1::Pod from, GetPod(api, options.source));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<NodeView> node, ReadNode(options.proxy));
  KEELSON_ASSIGN_OR_RETURN(Target to, name.find('/') != std::string::npos
                                          ? PodTarget(api, name, port, protocol)
                                          : OutsideTarget(*node, name, port));
  KEELSON_ASSIGN_OR_RETURN(ThisNode here, FindThisNode(api, *node));
  ConnectionReport out;
  Connection& c = out.connection;
  c = {.source = options.source,
       .destination = to.name,
       .source_node = from.spec().node_name(),
       .destination_node = to.node,
       .here = here.name,
       .protocol = protocol,
       .port = to.port};
  if (c.source_node != c.here && c.destination_node != c.here) {
    return Usage(c.IsOutside() ? "the pod is on " + c.source_node + ": run nodectl there, this is " + c.here
                               : "the pods are on " + c.source_node + " and " + c.destination_node +
                                     ": run nodectl there, this is " + c.here);
  }
  Source source{c.source_node != c.here      ? Source::kAddress
                : from.spec().host_network() ? Source::kHost
                                             : Source::kPod,
                "pod " + options.source, AddressesOf(from)};
  const uint8_t number = c.protocol == "TCP" ? IPPROTO_TCP : c.protocol == "UDP" ? IPPROTO_UDP : IPPROTO_SCTP;
  for (const IpAddress& address : to.addresses) {
    const IpAddress* own = source.IpFor(address);
    if (!own) continue;
    Frontend frontend{.ip = address, .port = c.port};
    out.paths.push_back(JudgeConnection(*own, FollowPacket(*node, source, frontend, number)));
  }
  out.notes = NotesOf(c);
  out.notes.insert(out.notes.end(), to.notes.begin(), to.notes.end());
  return out;
}

Result<int> WhyConnection(const Settings& settings, const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(ConnectionReport report, Explain(api, options));
  PrintAnswer(settings, ToTable(report), ToDocument(report));
  return report.HasProblems() ? kFoundProblems : 0;
}

}  // namespace

void AddWhyConnection(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      parent.add_subcommand("connection",
                            "which network policies let a connection of a pod through, or drop it, by the "
                            "rules in this node's kernel; exit code 2: it does not open");
  verb->fallthrough();
  verb->add_option("source", options->source, "NAMESPACE/POD")->required();
  verb->add_option("destination", options->destination,
                   "NAMESPACE/POD:PORT, a number or a container port's name; or ADDRESS:PORT, or "
                   "DOMAIN:PORT with the addresses that the cluster's DNS has given for it")
      ->required();
  verb->add_option("--protocol", options->protocol, "tcp, udp or sctp")
      ->check(CLI::IsMember({"tcp", "udp", "sctp"}))
      ->capture_default_str();
  verb->add_option("--ebpf-pin-directory", options->proxy.pin_directory, "As kube-proxy has it");
  verb->add_option("--masquerade-bit", options->proxy.masquerade_bit, "As kube-proxy has it")
      ->check(CLI::Range(0, 31));
  verb->callback([options, &chosen] {
    chosen = [options](const Settings& settings) { return WhyConnection(settings, *options); };
  });
}

}  // namespace keelson::ctl
