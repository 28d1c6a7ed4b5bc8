#include "proxy/ebpf/testing/programs.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>

#include <cstring>
#include <utility>

#include "lib/dataplane/ebpf_codec.h"
#include "proxy/ebpf/bpf/programs.bpf.h"

namespace keelson::proxy::ebpf {
namespace {

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }

}  // namespace

Names NamesOf(bool v4) {
  if (v4) {
    return {Ip("203.0.113.7"), Ip("172.30.0.1"), Ip("192.0.2.1"),  Ip("198.51.100.1"),
            Ip("10.1.0.1"),    Ip("10.2.0.1"),   Ip("172.30.0.9"), Ip("10.1.0.2")};
  }
  return {Ip("2001:db8::7"), Ip("fd30::1"), Ip("2001:db8:1::1"), Ip("2001:db8:2::1"),
          Ip("fd01::1"),     Ip("fd02::1"), Ip("fd30::9"),       Ip("fd01::2")};
}

Kernel::Kernel(bool v4, const linux::NetNs* place, bool dsr)
    : names(NamesOf(v4)),
      v4_(v4),
      dsr_(dsr),
      place_(place),
      plan_({.v4 = v4, .pod_cidrs = {*IpPrefix::Parse(v4 ? "10.0.0.0/8" : "fd02::/64")}}) {
  plan_.SetNodeIps({names.node});
  plan_.StartOver();
}

Result<> Kernel::Load() {
  KEELSON_ASSIGN_OR_RETURN(bpf::Object object,
                           bpf::Object::Open(bpf::embedded::keelson_bpf_services(), "test"));
  for (MapId id : {kEndpoints, kMembers, kMaglev, kSourceRanges, kServices, kExternalServices}) {
    KEELSON_RETURN_IF_ERROR(object.SetMaxEntries(MapName(id), 1024));
  }
  KEELSON_RETURN_IF_ERROR(object.SetMaxEntries("connections", 16384));
  KEELSON_RETURN_IF_ERROR(object.SetConstant("serves_v4", bpf::Map::Bytes(uint8_t{v4_})));
  KEELSON_RETURN_IF_ERROR(object.SetConstant("serves_dsr", bpf::Map::Bytes(uint8_t{dsr_})));
  KEELSON_RETURN_IF_ERROR(object.Load());
  object_.emplace(std::move(object));
  for (int id = 0; id < kMapCount; ++id) {
    KEELSON_RETURN_IF_ERROR(
        Map(MapName(static_cast<MapId>(id))).UpdateAll(plan_.Difference(static_cast<MapId>(id), {}).put));
  }
  return Map("devices").Put(kLoopback, dataplane::DeviceEntry{.link_header = 14});
}

void Kernel::Set(const std::string& key, const std::function<void(ResolvedPort&)>& make) {
  ResolvedPort port{.service = {.name = "ns/" + key, .cluster_ip = Ip(v4_ ? "10.96.0.1" : "fd96::1")}};
  port.service.port = 80;
  port.service.node_port = 30080;
  port.service.external_ips = {names.external};
  port.service.load_balancer_ips = {names.balancer};
  port.has_endpoints = true;
  port.cluster = {{names.pod, 8080, true}};
  make(port);
  plan_.SetService(key, {port});
  Changes changes = plan_.TakeChanges();
  for (int id = 0; id < kMapCount; ++id) {
    const bpf::Map map = Map(MapName(static_cast<MapId>(id)));
    EXPECT_TRUE(map.UpdateAll(changes.maps[id].put));
    EXPECT_TRUE(map.DeleteAll(changes.maps[id].gone));
  }
}

Result<bpf::Program::Output> Kernel::TestRun(const char* program, const std::string& frame,
                                             std::string_view context) const {
  Result<bpf::Program::Output> out = Error(Code::kInternal, "not run");
  auto run = [&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(out, object_->GetProgram(program)->TestRun(frame, context));
    return {};
  };
  KEELSON_RETURN_IF_ERROR(place_ ? place_->RunHere(run) : run());
  return out;
}

Seen Kernel::Run(const char* program, const std::string& frame, uint32_t device) const {
  __sk_buff context{};
  context.ifindex = device;
  auto out = TestRun(program, frame, bpf::Map::Bytes(context));
  EXPECT_TRUE(out) << out.error().message();
  if (!out) return {};
  std::memcpy(&context, out->context.data(), sizeof context);
  return {out->result, context.mark, out->packet};
}

Seen Kernel::RunXdp(const std::string& frame, uint32_t device) const {
  xdp_md context{};
  context.data_end = static_cast<__u32>(frame.size());
  context.ingress_ifindex = device;
  auto out = TestRun(dataplane::kXdpProgram, frame, bpf::Map::Bytes(context));
  EXPECT_TRUE(out) << out.error().message();
  if (!out) return {};
  return {out->result, 0, out->packet};
}

WirePacket At(WirePacket packet, const IpAddress& endpoint, uint16_t port) {
  packet.destination = endpoint;
  packet.destination_port = port;
  return packet;
}

WirePacket Answer(const WirePacket& packet, uint8_t flags) {
  WirePacket out = packet;
  std::swap(out.source, out.destination);
  std::swap(out.source_port, out.destination_port);
  out.tcp_flags = flags;
  out.payload = "answer";
  out.hops = WirePacket().hops;
  return out;
}

}  // namespace keelson::proxy::ebpf
