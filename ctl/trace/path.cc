#include "ctl/trace/path.h"

#include <algorithm>
#include <map>

#include "ctl/ebpf/external_packet.h"
#include "ctl/output.h"

namespace keelson::ctl {
namespace {

using nft::HookPoint;
using nft::TraceOutcome;

constexpr uint32_t kUnicast = 1, kLocalType = 2;  // RTN_UNICAST, RTN_LOCAL
constexpr uint16_t kSomePort = 40000;             // of the client

std::string ViaText(const Hop& hop) {
  return "dev " + hop.link + (hop.gateway ? " via " + hop.gateway->ToString() : "");
}

class Follower {
 public:
  Follower(NodeView& node, const Source& source) : node_(node), source_(source) {}

  Path Run(const Frontend& frontend, uint8_t protocol, SocketCall call) {
    path_.frontend = frontend;
    nft::Packet packet{.destination = frontend.ip,
                       .protocol = protocol,
                       .source_port = kSomePort,
                       .destination_port = frontend.port};
    const EbpfMaps* sockets = source_.kind == Source::kAddress ? nullptr : node_.Ebpf(frontend.ip.is_v4());
    if (sockets && AtSocket(*sockets, call, packet)) return Finish();
    if (Result<> found = FindSource(packet); !found) {
      Say("source", found.error().message());
      path_.verdict = Path::kNoWay;
      return std::move(path_);
    }
    if (source_.kind != Source::kAddress || !AtDevice(packet)) Send(packet, {});
    return Finish();
  }

 private:
  // What the program that serves the socket decides. False: the packet goes to where the client has asked.
  bool AtSocket(const EbpfMaps& maps, SocketCall call, const nft::Packet& asked) {
    const std::string program = ProgramName(call, asked.destination.is_v4()), where = "ebpf " + program;
    path_.call = call;
    if (!maps.IsAttached(program)) {
      Say(where, "not attached");
      return false;
    }
    SocketLbOutcome outcome = RunSocketLb(maps, source_.kind == Source::kHost, call, asked.destination,
                                          asked.protocol, asked.destination_port);
    Say(where, outcome.why);
    path_.misses = outcome.misses;
    switch (outcome.verdict) {
      case dataplane::kSocketPass:
        return false;
      case dataplane::kSocketRefuse:
        Say(where, "fails: connection refused");
        ends_.push_back({TraceOutcome::kRejected, false, false});
        return true;
      case dataplane::kSocketDrop:
        Say(where, "fails: operation not permitted");
        ends_.push_back({TraceOutcome::kDropped, false, false});
        return true;
      case dataplane::kSocketServe:
        break;
    }
    chosen_before_rules_ = true;
    for (const dataplane::EndpointAddress& endpoint : outcome.endpoints) {
      nft::Packet packet = asked;
      packet.destination = endpoint.ip;
      packet.destination_port = endpoint.port;
      const nft::TraceStep step{where, "to " + AddressText(endpoint.ip, endpoint.port)};
      if (Result<> found = FindSource(packet); !found) {
        Add({.packet = packet, .steps = {step}}, "no route: " + found.error().message(), false);
      } else {
        Send(packet, step);
      }
    }
    return true;
  }

  // What the filter of the device decides. False: the packet goes on as it came.
  bool AtDevice(const nft::Packet& asked) {
    const EbpfMaps* maps = node_.Ebpf(asked.destination.is_v4());
    if (!maps) return false;
    const std::string where = "ebpf from_outside " + asked.in_link;
    const FilterOutcome outcome = RunIngressFilter(*maps, {.link = asked.in_link,
                                                           .client = asked.source,
                                                           .to = asked.destination,
                                                           .protocol = asked.protocol,
                                                           .port = asked.destination_port});
    Say(where, outcome.why);
    if (!outcome.served) return false;
    chosen_before_rules_ = true;
    path_.misses = outcome.misses;
    for (const EndpointChoice& choice : outcome.choices) {
      nft::Packet packet = asked;
      packet.destination = choice.endpoint.ip;
      packet.destination_port = choice.endpoint.port;
      if (outcome.masquerade) packet.mark |= node_.masquerade_mark();
      const nft::TraceStep step{where, "to " + AddressText(packet.destination, packet.destination_port) +
                                           " (" + std::to_string(choice.percent) + " %)"};
      if (!outcome.masquerade || !SentOn(maps->external, packet, step)) Send(packet, step);
    }
    if (Result<Hop> back = node_.Route(asked.source)) {
      const ExternalDevice* leaves = maps->external.Device(back->link);
      if (!leaves || !leaves->served || !leaves->egress_filter) path_.answers_lost = back->link;
    }
    return true;
  }

  // At once, to another node's endpoint: no hook is met.
  bool SentOn(const ExternalMaps& maps, nft::Packet packet, const nft::TraceStep& step) {
    Result<Hop> route = node_.Route(packet.destination);
    if (!route || route->local) return false;
    const std::optional<IpAddress> from = DirectSource(maps, packet.in_link, route->link);
    if (!from) return false;
    packet.source_translated = true;
    Add({.packet = packet, .steps = {step, {step.chain, "sent on at once, from " + from->ToString()}}},
        ViaText(*route), true);
    return true;
  }

  // Through the first hook, and on. `before`: what has happened to this one alone; may be empty.
  void Send(const nft::Packet& packet, const nft::TraceStep& before) {
    const bool from_node = source_.kind == Source::kHost;
    for (TraceOutcome& way : Hook(from_node ? HookPoint::kOutput : HookPoint::kPrerouting, packet)) {
      if (!before.chain.empty()) way.steps.insert(way.steps.begin(), before);
      Continue(std::move(way), from_node);
    }
  }

  void Say(std::string where, std::string what) {
    path_.steps.push_back({std::move(where), std::move(what)});
  }

  // Where the packet comes from, and by which link.
  Result<> FindSource(nft::Packet& packet) {
    if (source_.kind == Source::kHost) {
      KEELSON_ASSIGN_OR_RETURN(Hop route, node_.Route(packet.destination));
      packet.source = route.source.value_or(packet.destination);
      return {};
    }
    const IpAddress* ip = source_.IpFor(packet.destination);
    if (!ip) return Error(Code::kNotFound, source_.name + " has no address of this family");
    packet.source = *ip;
    if (!source_.link.empty()) {
      packet.in_link = source_.link;
    } else if (Result<Hop> back = node_.Route(*ip)) {
      packet.in_link = back->link;
    }
    return {};
  }

  std::vector<TraceOutcome> Hook(HookPoint point, const nft::Packet& packet) {
    return nft::TraceHook(node_.tables(), point, packet,
                          [&](const IpAddress& ip) { return node_.IsLocal(ip) ? kLocalType : kUnicast; });
  }

  // The ways' packets through another hook: what that does is put behind what happened before. Rules of
  // others may part a way there.
  std::vector<TraceOutcome> Pass(std::vector<TraceOutcome> ways, HookPoint point) {
    std::vector<TraceOutcome> out;
    for (TraceOutcome& way : ways) {
      if (way.end != TraceOutcome::kGoesOn) {
        out.push_back(std::move(way));
        continue;
      }
      for (TraceOutcome& next : Hook(point, way.packet)) {
        next.steps.insert(next.steps.begin(), way.steps.begin(), way.steps.end());
        next.not_understood.insert(next.not_understood.begin(), way.not_understood.begin(),
                                   way.not_understood.end());
        out.push_back(std::move(next));
      }
    }
    return out;
  }

  // IPVS takes what has come as far as this node's own sockets, or is on its way out of them, and sends it on
  // by the hooks of this node's own packets.
  void Balance(TraceOutcome way, bool from_node, const NodeView::Balancer& balancer) {
    const nft::Packet arrived = way.packet;
    std::vector<TraceOutcome> ways;
    ways.push_back(std::move(way));
    if (!from_node) ways = Pass(std::move(ways), HookPoint::kInput);
    for (TraceOutcome& one : ways) {
      if (one.end != TraceOutcome::kGoesOn) {
        Add(one, "this node", true);
        continue;
      }
      bool taken = false;
      for (const netlink::FoundDestination& found : balancer.destinations) {
        const netlink::Destination& to = found.destination;
        if (to.weight == 0) continue;
        taken = true;
        TraceOutcome chosen = one;
        chosen.packet.first_destination = arrived.destination;
        chosen.packet.destination = to.ip;
        chosen.packet.destination_port = to.port;
        chosen.packet.translated = true;
        chosen.packet.in_link.clear();
        chosen.steps.push_back(
            {"ipvs " + balancer.scheduler, "to " + to.ip.ToString() + " port " + std::to_string(to.port)});
        std::vector<TraceOutcome> sent;
        sent.push_back(std::move(chosen));
        for (TraceOutcome& next : Pass(std::move(sent), HookPoint::kOutput)) Continue(std::move(next), true);
      }
      if (taken) continue;
      one.end = TraceOutcome::kRejected;
      one.steps.push_back({"ipvs " + balancer.scheduler, "no destination takes new connections"});
      Add(one, "this node", true);
    }
  }

  void Continue(TraceOutcome way, bool from_node) {
    const nft::Packet& packet = way.packet;
    if (way.end == TraceOutcome::kGoesOn && !packet.translated) {
      if (auto balancer =
              node_.FindBalancer({packet.protocol, packet.destination, packet.destination_port})) {
        return Balance(std::move(way), from_node, *balancer);
      }
    }
    Result<Hop> route = node_.Route(way.packet.destination);
    std::string via;
    if (!route) {
      via = "no route: " + route.error().message();
    } else {
      via = route->local ? "this node" : ViaText(*route);
    }
    std::vector<TraceOutcome> ways;
    ways.push_back(std::move(way));
    if (route) {
      if (!from_node && !route->local) ways = Pass(std::move(ways), HookPoint::kForward);
      if (from_node || !route->local) ways = Pass(std::move(ways), HookPoint::kPostrouting);
      if (route->local) ways = Pass(std::move(ways), HookPoint::kInput);
    }
    for (const TraceOutcome& end : ways) Add(end, via, route.has_value());
  }

  // Ways that end alike are one.
  void Add(const TraceOutcome& way, const std::string& via, bool reachable) {
    const bool chosen = way.packet.translated || chosen_before_rules_;
    ends_.push_back({way.end, chosen, node_.IsLocal(way.packet.destination)});
    for (const std::string& what : way.not_understood) {
      auto& known = path_.not_understood;
      if (std::find(known.begin(), known.end(), what) == known.end()) known.push_back(what);
    }
    path_.misses = path_.misses || !chosen;
    Backend& out = backends_[{way.packet.destination, way.packet.destination_port}];
    out.ip = way.packet.destination;
    out.port = way.packet.destination_port;
    out.masqueraded = out.masqueraded || way.packet.source_translated;
    out.via = via;
    out.reachable = reachable;
    const bool refused = way.end != TraceOutcome::kGoesOn;
    if (refused || !out.refused) out.steps = way.steps;
    out.refused = out.refused || refused;
  }

  Path Finish() {
    for (auto& entry : backends_) path_.backends.push_back(std::move(entry.second));
    ShareSteps();
    auto any = [&](auto is) { return std::any_of(ends_.begin(), ends_.end(), is); };
    if (any([](const End& e) { return e.chosen && e.end == TraceOutcome::kGoesOn; })) {
      path_.verdict = Path::kDelivered;
    } else if (any([](const End& e) { return e.end == TraceOutcome::kDropped; })) {
      path_.verdict = Path::kDropped;
    } else if (any([](const End& e) { return e.end == TraceOutcome::kRejected; })) {
      path_.verdict = Path::kRejected;
    } else {
      path_.verdict = any([](const End& e) { return e.local; }) ? Path::kLocal : Path::kNotTranslated;
    }
    // What is not translated has no backend.
    std::erase_if(path_.backends, [&](const Backend& backend) {
      return backend.ip == path_.frontend.ip && backend.port == path_.frontend.port;
    });
    return std::move(path_);
  }

  // Steps that all ways begin with are the path's.
  void ShareSteps() {
    auto& backends = path_.backends;
    auto same = [](const nft::TraceStep& a, const nft::TraceStep& b) {
      return a.chain == b.chain && a.what == b.what;
    };
    size_t shared = backends.empty() ? 0 : backends[0].steps.size();
    for (const Backend& backend : backends) {
      size_t i = 0;
      while (i < std::min(shared, backend.steps.size()) && same(backend.steps[i], backends[0].steps[i])) ++i;
      shared = i;
    }
    auto end = static_cast<std::ptrdiff_t>(shared);
    if (shared > 0) {
      path_.steps.insert(path_.steps.end(), backends[0].steps.begin(), backends[0].steps.begin() + end);
    }
    for (Backend& backend : backends) backend.steps.erase(backend.steps.begin(), backend.steps.begin() + end);
  }

  struct End {
    TraceOutcome::End end;
    bool chosen, local;
  };
  NodeView& node_;
  const Source& source_;
  Path path_;
  bool chosen_before_rules_ = false;
  std::vector<End> ends_;
  std::map<std::pair<IpAddress, uint16_t>, Backend> backends_;
};

}  // namespace

const IpAddress* Source::IpFor(const IpAddress& destination) const {
  auto found = std::find_if(ips.begin(), ips.end(),
                            [&](const IpAddress& ip) { return ip.is_v4() == destination.is_v4(); });
  return found == ips.end() ? nullptr : &*found;
}

std::string_view VerdictName(Path::Verdict verdict) {
  switch (verdict) {
    case Path::kDelivered:
      return "Delivered";
    case Path::kLocal:
      return "Local";
    case Path::kNotTranslated:
      return "NotTranslated";
    case Path::kDropped:
      return "Dropped";
    case Path::kRejected:
      return "Rejected";
    case Path::kNoWay:
      return "NoWay";
  }
  return "";
}

Path FollowPacket(NodeView& node, const Source& source, const Frontend& frontend, uint8_t protocol,
                  SocketCall call) {
  return Follower(node, source).Run(frontend, protocol, call);
}

}  // namespace keelson::ctl
