#include "tests/netns/bench_paths.h"

#include "tests/netns/upstream_shape.h"

namespace keelson::netns {

std::vector<proxy::ResolvedPort> BenchServices(int size, const std::string& server) {
  std::vector<proxy::ResolvedPort> out;
  auto add = [&](int i, uint8_t protocol, uint16_t from, uint16_t to) {
    proxy::ResolvedPort& port = out.emplace_back();
    port.service = {.name = "ns/s" + std::to_string(i) + ":" + std::to_string(from),
                    .protocol = protocol,
                    .cluster_ip = IpAddress::Parse("10.96.0.1")->Plus(i),
                    .port = from};
    port.has_endpoints = true;
    if (i == 0) {
      port.cluster = {{EndpointAddress(server, true), to, server == "pod2"}};
      port.service.node_port = static_cast<uint16_t>(30000 + from);
    } else {
      for (int e = 0; e < 3; ++e) {
        port.cluster.push_back({IpAddress::Parse("10.64.0.1")->Plus(i * 3 + e), 80});
      }
    }
  };
  add(0, proxy::kTcp, 80, kEndpointPort);
  add(0, proxy::kUdp, 80, kEndpointPort);
  add(0, proxy::kTcp, 81, kSinkPort);
  for (int i = 1; i < size; ++i) add(i, proxy::kTcp, 80, 80);
  return out;
}

Result<> Load(Path path, int size, PathBench& out) {
  std::vector<proxy::ResolvedPort> services = BenchServices(size, out.server);
  const auto begin = std::chrono::steady_clock::now();
  if (path != kDirect && path != kUpstream) {
    KEELSON_ASSIGN_OR_RETURN(out.plane, out.world->Start({.mode = path == kKeelson ? "nftables" : "ebpf",
                                                          .pod_cidrs = {*IpPrefix::Parse("10.0.0.0/8")},
                                                          .direct = path == kEbpfDirect}));
    for (size_t i = 0; i < services.size(); ++i) out.plane->SetService(std::to_string(i), {services[i]});
    KEELSON_RETURN_IF_ERROR(out.plane->Sync());
  } else if (path == kUpstream) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel(out.world->node()));
    KEELSON_RETURN_IF_ERROR(kernel->Apply(UpstreamShape(services)));
  }
  out.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

Result<PathBench> PreparePath(Path path, int size, bool outside) {
  PathBench out;
  if (outside) {
    out.client = "outside";
    out.server = "remote";
  }
  KEELSON_ASSIGN_OR_RETURN(out.world, ServiceWorld::Make());
  out.question = out.world->From(out.client, true);
  out.question.to = path == kDirect ? EndpointAddress(out.server, true)
                    : outside       ? ClientAddress("node", true)
                                    : *IpAddress::Parse("10.96.0.1");
  const uint16_t first = outside ? 30000 : 0;
  out.question.port = path == kDirect ? kEndpointPort : first + 80;
  out.sink = out.question;
  out.sink.port = path == kDirect ? kSinkPort : first + 81;
  KEELSON_RETURN_IF_ERROR(Load(path, size, out));
  out.world->Become(out.client);
  return out;
}

}  // namespace keelson::netns
