#include "ctl/trace/judge.h"

#include <algorithm>

#include "ctl/ebpf/external_packet.h"
#include "ctl/output.h"
#include "lib/dataplane/nftables_names.h"

namespace keelson::ctl {
namespace {

constexpr size_t kNamed = 5;  // of a longer list

std::string EndpointText(const Endpoint& endpoint) {
  std::string out = AddressText(endpoint.ip, endpoint.port);
  return endpoint.pod.empty() ? out : endpoint.pod + " (" + out + ")";
}

template <typename T, typename Text>
std::string Listed(const std::vector<T>& items, Text text) {
  std::string out;
  for (size_t i = 0; i < std::min(items.size(), kNamed); ++i) out += (i > 0 ? ", " : "") + text(items[i]);
  if (items.size() > kNamed) out += " and " + std::to_string(items.size() - kNamed) + " more";
  return out;
}

template <typename T, typename Predicate>
std::vector<T> Filtered(const std::vector<T>& items, Predicate keep) {
  std::vector<T> out;
  std::copy_if(items.begin(), items.end(), std::back_inserter(out), keep);
  return out;
}

// Ready ones; where there is none, those that still serve on their way out.
std::vector<Endpoint> Usable(const std::vector<Endpoint>& endpoints) {
  auto ready = Filtered(endpoints, [](const Endpoint& e) { return e.ready; });
  if (!ready.empty()) return ready;
  return Filtered(endpoints, [](const Endpoint& e) { return e.serving && e.terminating; });
}

std::string NotReadyText(const Endpoint& endpoint) {
  return EndpointText(endpoint) + (endpoint.terminating ? " terminating" : " not ready");
}

Problem WhyNobody(const ServiceView& service, const std::vector<Endpoint>& family) {
  if (!family.empty()) return {"NotReady", "no endpoint is ready: " + Listed(family, NotReadyText)};
  if (service.has_selector) return {"NoEndpoints", "no endpoints: no pod matches the Service's selector"};
  return {"NoEndpoints",
          "no endpoints: the Service has no selector, and nobody has made EndpointSlices for it"};
}

bool InRanges(const std::vector<IpPrefix>& ranges, const IpAddress& ip) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IpPrefix& range) { return range.Contains(ip); });
}

bool LocalOnly(const ServiceView& service, const Frontend& frontend, const Source& source) {
  if (frontend.kind == Frontend::kClusterIp) return service.internal_local;
  return service.external_local && source.kind == Source::kAddress;
}

// Backends that the API does not know as usable, and the other way round.
void Compare(const Expected& expected, const Path& path, bool sticky, std::vector<Problem>& out) {
  auto stale = Filtered(path.backends, [&](const Backend& backend) {
    return std::none_of(expected.endpoints.begin(), expected.endpoints.end(),
                        [&](const Endpoint& e) { return e.ip == backend.ip && e.port == backend.port; });
  });
  if (!stale.empty()) {
    out.push_back(
        {"StaleEndpoint", "the kernel sends to what is no endpoint for this packet: " +
                              Listed(stale, [](const Backend& b) { return AddressText(b.ip, b.port); })});
  }
  if (path.misses) {
    out.push_back({"EmptySlot",
                   "some packets are sent to no endpoint: the rules may draw a number that stands for none"});
  }
  auto missing = Filtered(expected.endpoints, [&](const Endpoint& e) {
    return std::none_of(path.backends.begin(), path.backends.end(),
                        [&](const Backend& b) { return e.ip == b.ip && e.port == b.port; });
  });
  bool kept_to_one = sticky && path.backends.size() == 1;
  if (!missing.empty() && !expected.chosen_by_hints && !kept_to_one) {
    out.push_back({"MissingEndpoint", "the kernel does not know: " + Listed(missing, EndpointText)});
  }
}

void JudgeBackends(const Path& path, std::vector<Problem>& out) {
  auto lost = Filtered(path.backends, [](const Backend& b) { return !b.reachable; });
  if (!lost.empty()) {
    out.push_back({"NoRoute", "this node has no route to: " +
                                  Listed(lost, [](const Backend& b) { return AddressText(b.ip, b.port); })});
  }
  auto refused = Filtered(path.backends, [](const Backend& b) { return b.refused; });
  if (!refused.empty()) {
    out.push_back({"Refused", "a rule behind the choice of an endpoint refuses: " +
                                  Listed(refused, [](const Backend& b) {
                                    return AddressText(b.ip, b.port) +
                                           (b.steps.empty() ? "" : " (" + b.steps.back().chain + ")");
                                  })});
  }
}

std::string Where(const Path& path) { return path.steps.empty() ? "" : " by " + path.steps.back().chain; }

}  // namespace

Expected ExpectedEndpoints(const ServiceView& service, const PortView& port, const Frontend& frontend,
                           const Source& source, const std::string& node_name) {
  Expected out;
  auto family =
      Filtered(port.endpoints, [&](const Endpoint& e) { return e.ip.is_v4() == frontend.ip.is_v4(); });
  const IpAddress* client = source.IpFor(frontend.ip);
  if (frontend.kind == Frontend::kLoadBalancer && !service.source_ranges.empty() &&
      source.kind == Source::kAddress && client && !InRanges(service.source_ranges, *client)) {
    out.nobody = Problem{"ForbiddenSource", client->ToString() + " is outside of loadBalancerSourceRanges"};
    return out;
  }
  auto usable = Usable(family);
  if (usable.empty()) {
    out.nobody = WhyNobody(service, family);
    return out;
  }
  if (LocalOnly(service, frontend, source)) {
    usable = Usable(Filtered(family, [&](const Endpoint& e) { return e.node == node_name; }));
    if (usable.empty()) {
      out.nobody = Problem{"NoLocalEndpoint",
                           std::string(frontend.kind == Frontend::kClusterIp ? "internalTrafficPolicy"
                                                                             : "externalTrafficPolicy") +
                               " is Local, and no ready endpoint is on " + node_name};
      return out;
    }
  }
  out.chosen_by_hints = std::all_of(usable.begin(), usable.end(), [](const Endpoint& e) { return e.hinted; });
  out.endpoints = std::move(usable);
  return out;
}

std::vector<Problem> Judge(const ServiceView& service, const PortView& port, const Path& path,
                           const Source& source, const std::string& node_name) {
  std::vector<Problem> out;
  // A cluster IP that is the node's own is served by somebody here, as the cluster's DNS is.
  bool local = path.verdict == Path::kLocal;
  if (local && path.frontend.kind == Frontend::kClusterIp) return out;
  if (path.verdict == Path::kNoWay) {
    out.push_back({"NoWay", path.steps.empty() ? "no way" : path.steps.back().what});
    return out;
  }
  Expected expected = ExpectedEndpoints(service, port, path.frontend, source, node_name);
  if (expected.nobody) out.push_back(*expected.nobody);
  bool refused = path.verdict == Path::kDropped || path.verdict == Path::kRejected;
  if (local || path.verdict == Path::kNotTranslated) {
    out.push_back({"NotProgrammed", "no rule on this node knows " +
                                        AddressText(path.frontend.ip, path.frontend.port) + "/" +
                                        port.protocol + ": is kube-proxy running here?"});
  } else if (refused && !expected.nobody) {
    out.push_back({"Refused", "the packet is refused" + Where(path) + ", though there are endpoints"});
  } else if (path.verdict == Path::kDelivered) {
    Compare(expected, path, service.session_affinity, out);
  }
  if (!path.answers_lost.empty()) {
    out.push_back({"AnswersNotTranslated", "answers leave by " + path.answers_lost +
                                               ", where no filter gives them the Service's address"});
  }
  JudgeBackends(path, out);
  return out;
}

std::vector<Problem> JudgeEbpf(const NodeView& node, const Source& source, const std::string& pin_directory,
                               uint64_t node_netns) {
  if (source.kind == Source::kAddress && !node.ebpf().empty()) return ExternalFaults(node.ebpf());
  const bool rules = std::any_of(node.tables().begin(), node.tables().end(), [](const nft::LiveTable& table) {
    return table.contents.table.name.ends_with(dataplane::kEbpfTableSuffix);
  });
  return SocketLbFaults(node.ebpf(), rules, pin_directory, node_netns);
}

std::vector<Problem> JudgeFlows(const PortView& port, const std::vector<netlink::Flow>& flows) {
  auto stale = Filtered(flows, [&](const netlink::Flow& flow) {
    return std::none_of(port.endpoints.begin(), port.endpoints.end(), [&](const Endpoint& e) {
      return e.ip == flow.replier && e.port == flow.replier_port;
    });
  });
  if (stale.empty()) return {};
  return {{"StaleConnection", std::to_string(stale.size()) +
                                  " tracked connection(s) lead to what is no endpoint: " +
                                  Listed(stale, [](const netlink::Flow& flow) {
                                    return AddressText(flow.source, flow.source_port) + " to " +
                                           AddressText(flow.replier, flow.replier_port);
                                  })}};
}

}  // namespace keelson::ctl
