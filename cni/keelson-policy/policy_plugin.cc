#include "cni/keelson-policy/policy_plugin.h"

#include <sys/random.h>
#include <unistd.h>

#include <chrono>

#include "cni/keelson-policy/agent_call.h"
#include "cni/keelson-policy/attachment.h"
#include "cni/lib/json.h"
#include "cni/lib/label.h"
#include "cni/lib/linger.h"
#include "cni/lib/netns_socket.h"
#include "lib/netlink/link.h"

namespace keelson::cni {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kDefaultBoundMs = 10'000, kMaxBoundMs = 60'000;
constexpr useconds_t kPauseUs = 50'000;  // between two attempts to find the agent

Outcome<std::chrono::milliseconds> Bound(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(int bound, GetInt(request.config, "timeoutMilliseconds", kDefaultBoundMs));
  if (bound < 1 || bound > kMaxBoundMs) {
    return CniError{kInvalidConfig, "timeoutMilliseconds must be 1 to 60000", ""};
  }
  return std::chrono::milliseconds(bound);
}

// The bridge's port of the container: the other end of its interface.
Outcome<std::string> PortOf(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::Open(request.netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket container, OpenSocketIn(netns));
  KEELSON_ASSIGN_OR_RETURN(netlink::Link inside, netlink::GetLink(container, request.ifname));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket host, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Link port, netlink::GetLink(host, inside.peer_index));
  if (inside.kind != "veth" || port.master == 0) {
    return CniError{kInvalidConfig, request.ifname + " is not connected to a bridge", ""};
  }
  return port.name;
}

Outcome<PodAttachment> Describe(const Request& request) {
  if (!request.prev_result) return CniError{kInvalidConfig, "must be called as chained plugin", ""};
  PodAttachment out{.label = LabelOf(request)};
  auto uid = request.args.find("K8S_POD_UID");
  if (uid == request.args.end() || uid->second.empty() || uid->second.size() > 100) {
    return CniError{kInvalidEnvironment, "the runtime does not name the pod in CNI_ARGS (K8S_POD_UID)", ""};
  }
  out.uid = uid->second;
  for (const IpConfig& ip : request.prev_result->ips) out.addresses.push_back(ip.address.address());
  if (out.addresses.empty()) return CniError{kInvalidConfig, "the container has no address", ""};
  KEELSON_ASSIGN_OR_RETURN(out.port, PortOf(request));
  return out;
}

// Tries until the bound: an agent that restarts is back soon.
Outcome<> PutInPlace(const PodAttachment& attachment, std::chrono::milliseconds bound) {
  const Clock::time_point end = Clock::now() + bound;
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  bool attached = false;
  std::string reason = "there was no time to ask kube-cni";
  for (;;) {
    Result<> attach = attached ? Result<>() : Attach(*kernel, attachment);
    if (!attach && !attach.error().Is(Code::kNotFound)) return attach.error();
    attached = attach.has_value();
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    const bool over = left.count() <= 0;
    if (!attached) reason = attach.error().message();
    if (attached && !over) {
      Result<> in_place = AwaitPolicies(attachment, left);
      if (in_place) return {};
      reason = in_place.error().message();
    }
    if (over) {
      return CniError{kTryAgainLater,
                      "network policies of pod " + attachment.uid + " are not in place after " +
                          std::to_string(bound.count()) + " ms",
                      reason};
    }
    ::usleep(kPauseUs);
  }
}

Outcome<> Remove(const std::function<bool(std::string_view label)>& unwanted) {
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  KEELSON_RETURN_IF_ERROR(Detach(*kernel, unwanted));
  CloseSocketsInChild();
  return {};
}

Outcome<AddResult> Add(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(std::chrono::milliseconds bound, Bound(request));
  KEELSON_ASSIGN_OR_RETURN(PodAttachment attachment, Describe(request));
  if (::getrandom(&attachment.epoch, sizeof attachment.epoch, 0) != sizeof attachment.epoch) {
    return ErrnoError("getrandom");
  }
  Outcome<> done = PutInPlace(attachment, bound);
  if (done) return *request.prev_result;
  (void)Remove([&](std::string_view label) { return label == attachment.label; });
  return done.error();
}

// There is no GC: an address may have another pod by now. The agent removes elements of ports that are gone, and
// the next ADD clears what is left of an address.
Outcome<> Del(const Request& request) {
  std::string mine = LabelOf(request);
  return Remove([&](std::string_view label) { return label == mine; });
}

Outcome<> Check(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(PodAttachment attachment, Describe(request));
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  return VerifyAttachment(*kernel, attachment);
}

Outcome<> Status(const Request& request) {
  KEELSON_RETURN_IF_ERROR(Bound(request));
  auto kernel = nft::OpenKernel();
  Result<uint32_t> generation = kernel ? (*kernel)->Generation() : kernel.error();
  if (!generation) return CniError{kPluginNotAvailable, "nftables: " + generation.error().message(), ""};
  return {};
}

}  // namespace

Plugin NetworkPolicyPlugin() {
  return {.about = "CNI network policy plugin of Keelson",
          .add = Add,
          .del = Del,
          .check = Check,
          .status = Status};
}

}  // namespace keelson::cni
