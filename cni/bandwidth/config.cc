#include "cni/bandwidth/config.h"

#include <algorithm>

#include "cni/lib/json.h"
#include "cni/lib/label.h"

namespace keelson::cni {
namespace {

using boost::json::object;

constexpr uint64_t kLatencyMs = 25;  // of a packet behind a full queue
constexpr uint32_t kEthernetHeader = 14;

CniError Bad(std::string message) { return {kInvalidConfig, std::move(message), ""}; }

Outcome<> Validate(const Limit& limit) {
  if (limit.burst == 0 && limit.rate != 0) return Bad("if rate is set, burst must also be set");
  if (limit.rate == 0 && limit.burst != 0) return Bad("if burst is set, rate must also be set");
  if (limit.burst / 8 >= UINT32_MAX) return Bad("burst cannot be more than 4GB");
  if (limit.rate != 0 && limit.rate < 8) return Bad("rate is below one byte a second");
  return {};
}

Outcome<BandwidthConfig> ReadLimits(const object& json) {
  BandwidthConfig out;
  KEELSON_ASSIGN_OR_RETURN(out.ingress.rate, GetUnsigned(json, "ingressRate"));
  KEELSON_ASSIGN_OR_RETURN(out.ingress.burst, GetUnsigned(json, "ingressBurst"));
  KEELSON_ASSIGN_OR_RETURN(out.egress.rate, GetUnsigned(json, "egressRate"));
  KEELSON_ASSIGN_OR_RETURN(out.egress.burst, GetUnsigned(json, "egressBurst"));
  for (const char* field : {"shapedSubnets", "unshapedSubnets"}) {
    KEELSON_ASSIGN_OR_RETURN(auto subnets, GetStrings(json, field));
    if (!subnets.empty()) return CniError{kUnsupportedField, std::string("unsupported field ") + field, ""};
  }
  KEELSON_RETURN_IF_ERROR(Validate(out.ingress));
  KEELSON_RETURN_IF_ERROR(Validate(out.egress));
  return out;
}

}  // namespace

Outcome<BandwidthConfig> ReadBandwidthConfig(const Request& request) {
  for (const char* field : {"ingressRate", "ingressBurst", "egressRate", "egressBurst"}) {
    if (request.config.contains(field)) return ReadLimits(request.config);
  }
  KEELSON_ASSIGN_OR_RETURN(const object* runtime, RuntimeConfig(request.config));
  if (!runtime) return BandwidthConfig();
  KEELSON_ASSIGN_OR_RETURN(const object* bandwidth, GetObject(*runtime, "bandwidth"));
  if (!bandwidth) return BandwidthConfig();
  return ReadLimits(*bandwidth);
}

netlink::TokenBucket BucketFor(const Limit& limit, int mtu) {
  netlink::TokenBucket out{.rate = limit.rate / 8, .burst = static_cast<uint32_t>(limit.burst / 8)};
  out.burst = std::max(out.burst, static_cast<uint32_t>(mtu) + kEthernetHeader);
  uint64_t waiting = out.rate > UINT64_MAX / kLatencyMs ? UINT32_MAX : out.rate * kLatencyMs / 1000;
  out.limit = static_cast<uint32_t>(std::min<uint64_t>(waiting + out.burst, UINT32_MAX));
  return out;
}

std::string IfbName(const Request& request) {
  std::string label = LabelOf(request);
  return "bwp" + ShortHash(label) + ShortHash("ifb" + label).substr(0, 4);
}

}  // namespace keelson::cni
