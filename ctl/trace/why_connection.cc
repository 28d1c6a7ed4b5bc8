// nodectl why connection NAMESPACE/POD NAMESPACE/POD:PORT [--protocol tcp]
#include <netinet/in.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>

#include "ctl/trace/connection_report.h"
#include "ctl/trace/this_node.h"
#include "ctl/verb.h"

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

// A number, or what a container calls the port.
Result<uint16_t> PortOf(const corev1::Pod& pod, const std::string& text, const std::string& protocol) {
  uint16_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number > 0) return number;
  for (const auto& container : pod.spec().containers()) {
    for (const auto& port : container.ports()) {
      const std::string& of = port.protocol().empty() ? "TCP" : port.protocol();
      if (port.name() == text && of == protocol) return static_cast<uint16_t>(port.container_port());
    }
  }
  return Usage("the pod has no " + protocol + " port \"" + text + "\"");
}

Result<ConnectionReport> Explain(const client::RestClient& api, const Options& options) {
  size_t colon = options.destination.rfind(':');
  if (colon == std::string::npos) {
    return Usage("want NAMESPACE/POD:PORT, not \"" + options.destination + "\"");
  }
  const std::string target = options.destination.substr(0, colon);
  KEELSON_ASSIGN_OR_RETURN(corev1::Pod from, GetPod(api, options.source));
  KEELSON_ASSIGN_OR_RETURN(corev1::Pod to, GetPod(api, target));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<NodeView> node, ReadNode(options.proxy));
  KEELSON_ASSIGN_OR_RETURN(ThisNode here, FindThisNode(api, *node));
  ConnectionReport out;
  Connection& c = out.connection;
  c = {.source = options.source,
       .destination = target,
       .source_node = from.spec().node_name(),
       .destination_node = to.spec().node_name(),
       .here = here.name,
       .protocol = options.protocol == "udp"    ? "UDP"
                   : options.protocol == "sctp" ? "SCTP"
                                                : "TCP"};
  if (c.source_node != c.here && c.destination_node != c.here) {
    return Usage("the pods are on " + c.source_node + " and " + c.destination_node +
                 ": run nodectl there, this is " + c.here);
  }
  KEELSON_ASSIGN_OR_RETURN(c.port, PortOf(to, options.destination.substr(colon + 1), c.protocol));
  Source source{c.source_node != c.here      ? Source::kAddress
                : from.spec().host_network() ? Source::kHost
                                             : Source::kPod,
                "pod " + options.source, AddressesOf(from)};
  const uint8_t protocol = c.protocol == "TCP"   ? IPPROTO_TCP
                           : c.protocol == "UDP" ? IPPROTO_UDP
                                                 : IPPROTO_SCTP;
  for (const IpAddress& address : AddressesOf(to)) {
    const IpAddress* own = source.IpFor(address);
    if (!own) continue;
    Frontend frontend{.ip = address, .port = c.port};
    out.paths.push_back(JudgeConnection(*own, FollowPacket(*node, source, frontend, protocol)));
  }
  out.notes = NotesOf(c);
  return out;
}

Result<int> WhyConnection(const Settings& settings, const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(ConnectionReport report, Explain(api, options));
  switch (settings.format()) {
    case OutputFormat::kTable:
      std::cout << ToTable(report);
      break;
    case OutputFormat::kJson:
      std::cout << ToJson(ToDocument(report));
      break;
    case OutputFormat::kYaml:
      std::cout << ToYaml(ToDocument(report));
      break;
  }
  return report.HasProblems() ? kFoundProblems : 0;
}

}  // namespace

void AddWhyConnection(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      parent.add_subcommand("connection",
                            "which network policies let a connection between pods through, or drop "
                            "it, by the rules in this node's kernel; exit code 2: it does not open");
  verb->fallthrough();
  verb->add_option("source", options->source, "NAMESPACE/POD")->required();
  verb->add_option("destination", options->destination,
                   "NAMESPACE/POD:PORT, a number or a container port's name")
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
