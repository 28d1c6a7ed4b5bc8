// nodectl trace service NAMESPACE/NAME[:PORT] [--from pod NAMESPACE/NAME | host | ADDRESS]
#include <CLI/CLI.hpp>
#include <algorithm>

#include "ctl/ebpf/external_packet.h"
#include "ctl/inspect_verbs.h"
#include "ctl/trace/report.h"
#include "ctl/trace/this_node.h"
#include "lib/linux/netns.h"

namespace keelson::ctl {
namespace {

constexpr char kServiceNameLabel[] = "kubernetes.io/service-name";

struct Options {
  std::string service;
  std::vector<std::string> from = {"host"};
  std::string device;  // that an ADDRESS comes in by
  ProxySettings proxy;
};

struct Wanted {
  std::string ns, name, port;  // port: a name or number; empty: all
};

Error Usage(const std::string& what) { return Error(Code::kInvalid, what); }

Result<Wanted> ParseWanted(const std::string& text) {
  Wanted out;
  size_t slash = text.find('/');
  if (slash == std::string::npos || slash == 0) {
    return Usage("want NAMESPACE/NAME[:PORT], not \"" + text + "\"");
  }
  size_t colon = std::min(text.find(':', slash), text.size());
  out.ns = text.substr(0, slash);
  out.name = text.substr(slash + 1, colon - slash - 1);
  if (colon < text.size()) out.port = text.substr(colon + 1);
  if (out.name.empty()) return Usage("want NAMESPACE/NAME[:PORT], not \"" + text + "\"");
  return out;
}

Result<Source> FindPod(const client::RestClient& api, const std::string& text, const ThisNode& here) {
  KEELSON_ASSIGN_OR_RETURN(Wanted wanted, ParseWanted(text));
  KEELSON_ASSIGN_OR_RETURN(corev1::Pod pod, api.Get<corev1::Pod>(wanted.ns, wanted.name));
  const std::string& node = pod.spec().node_name();
  if (node.empty()) return Usage("pod " + text + " is on no node yet");
  if (node != here.name) {
    return Usage("pod " + text + " is on " + node + ": run nodectl there, this is " + here.name);
  }
  if (pod.spec().host_network()) return Source{Source::kHost, "pod " + text + " (host network)", {}};
  Source out{Source::kPod, "pod " + text, AddressesOf(pod)};
  if (out.ips.empty()) return Usage("pod " + text + " has no address yet");
  return out;
}

Result<Source> FindSource(const client::RestClient& api, const Options& options, const ThisNode& here) {
  const auto& [service, from, device, proxy] = options;
  if (from.size() == 1 && from[0] == "host") return Source{Source::kHost, "host", {}};
  if (from.size() == 2 && from[0] == "pod") return FindPod(api, from[1], here);
  if (from.size() != 1) return Usage("want --from pod NAMESPACE/NAME, --from host or --from ADDRESS");
  KEELSON_ASSIGN_OR_RETURN(IpAddress ip, IpAddress::Parse(from[0]));
  return Source{Source::kAddress, "address " + ip.ToString(), {ip}, device};
}

bool IsWanted(const PortView& port, const std::string& wanted) {
  return wanted.empty() || port.name == wanted || std::to_string(port.port) == wanted;
}

// What somebody outside of the cluster has no business with.
bool Serves(const Frontend& frontend, const Source& source) {
  return frontend.kind != Frontend::kClusterIp || source.kind != Source::kAddress;
}

Result<TracedPath> TraceOne(NodeView& node, const ServiceView& service, const PortView& port,
                            const Frontend& frontend, SocketCall call, const Source& source,
                            const std::string& node_name) {
  TracedPath out{port.name,
                 port.protocol,
                 FollowPacket(node, source, frontend, port.protocol_number(), call),
                 port.endpoints,
                 0,
                 {}};
  out.problems = Judge(service, port, out.path, source, node_name);
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Flow> flows,
                           node.Flows(frontend.ip.is_v4(), port.protocol_number()));
  if (const EbpfMaps* maps = node.Ebpf(frontend.ip.is_v4()); maps && source.kind == Source::kAddress) {
    for (netlink::Flow& flow : NatFlows(*maps, port.protocol_number())) flows.push_back(std::move(flow));
  }
  std::erase_if(flows, [&](const netlink::Flow& flow) {
    const IpAddress* from = source.IpFor(frontend.ip);
    bool ours = source.kind == Source::kHost ? node.IsLocal(flow.source) : from && flow.source == *from;
    return !ours || flow.destination != frontend.ip || flow.destination_port != frontend.port;
  });
  out.connections = flows.size();
  // An unanswered connection has its own address as the replier's.
  std::erase_if(flows, [&](const netlink::Flow& flow) { return flow.replier == frontend.ip; });
  for (Problem& problem : JudgeFlows(port, flows)) out.problems.push_back(std::move(problem));
  return out;
}

// A socket of UDP that eBPF serves is asked in two ways.
std::vector<SocketCall> CallsOf(const NodeView& node, const PortView& port, const Frontend& frontend,
                                const Source& source) {
  const bool served = source.kind != Source::kAddress && node.Ebpf(frontend.ip.is_v4());
  if (!served || port.protocol != "UDP") return {SocketCall::kConnect};
  return {SocketCall::kConnect, SocketCall::kSend};
}

Result<TraceReport> Trace(const client::RestClient& api, const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(Wanted wanted, ParseWanted(options.service));
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<NodeView> node, ReadNode(options.proxy));
  KEELSON_ASSIGN_OR_RETURN(ThisNode here, FindThisNode(api, *node));
  KEELSON_ASSIGN_OR_RETURN(Source source, FindSource(api, options, here));
  KEELSON_ASSIGN_OR_RETURN(corev1::Service service, api.Get<corev1::Service>(wanted.ns, wanted.name));
  KEELSON_ASSIGN_OR_RETURN(
      std::vector<discoveryv1::EndpointSlice> slices,
      api.List<discoveryv1::EndpointSlice>(
          wanted.ns, {.label_selector = std::string(kServiceNameLabel) + "=" + wanted.name}));
  ServiceView view = MakeServiceView(service, slices, here.ips);
  TraceReport out{.service = view.name, .type = view.type, .source = source.name, .node = here.name};
  out.problems = JudgeEbpf(*node, source, options.proxy.pin_directory, linux::NetnsCookie().value_or(0));
  if (!view.external_name.empty()) {
    out.notes.push_back("ExternalName: DNS sends clients to " + view.external_name +
                        "; no packet is translated");
  } else if (view.headless) {
    out.notes.push_back("headless: DNS gives clients the endpoints' own addresses; no packet is translated");
  }
  bool found = false;
  for (const PortView& port : view.ports) {
    if (!IsWanted(port, wanted.port)) continue;
    found = true;
    for (const Frontend& frontend : port.frontends) {
      if (!Serves(frontend, source)) continue;
      for (SocketCall call : CallsOf(*node, port, frontend, source)) {
        KEELSON_ASSIGN_OR_RETURN(TracedPath path,
                                 TraceOne(*node, view, port, frontend, call, source, here.name));
        out.paths.push_back(std::move(path));
      }
    }
  }
  if (!found && !wanted.port.empty()) return Usage("Service " + view.name + " has no port " + wanted.port);
  if (out.paths.empty() && out.notes.empty()) {
    out.notes.push_back("the Service has no address that " + source.name + " could use");
  }
  return out;
}

Result<int> RunTrace(const Settings& settings, const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(client::RestClient api, ConnectApi(settings));
  KEELSON_ASSIGN_OR_RETURN(TraceReport report, Trace(api, options));
  PrintAnswer(settings, ToTable(report), ToDocument(report));
  return report.HasProblems() ? kFoundProblems : 0;
}

}  // namespace

void AddTraceService(CLI::App& parent, Run& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = parent.add_subcommand("service",
                                         "where this node sends a packet to a Service, by the rules in its "
                                         "kernel; exit code 2: something is wrong");
  verb->fallthrough();
  verb->add_option("service", options->service, "NAMESPACE/NAME[:PORT]");
  verb->add_option("--from", options->from,
                   "Pod NAMESPACE/NAME (of this node), host, or the ADDRESS of a client outside")
      ->expected(1, 2);
  verb->add_option("--device", options->device,
                   "Device that packets of ADDRESS come in by; default: what answers leave by");
  verb->add_option("--ebpf-pin-directory", options->proxy.pin_directory, "As kube-proxy has it");
  verb->add_option("--masquerade-bit", options->proxy.masquerade_bit, "As kube-proxy has it")
      ->check(CLI::Range(0, 31));
  verb->callback([options, &chosen] {
    // "--from host NAMESPACE/NAME": --from takes two words where it can.
    auto& from = options->from;
    if (options->service.empty() && from.size() == 2 && from[0] != "pod") {
      options->service = from[1];
      from.pop_back();
    }
    chosen = [options](const Settings& settings) { return RunTrace(settings, *options); };
  });
}

}  // namespace keelson::ctl
