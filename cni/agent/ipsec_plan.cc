#include "cni/agent/ipsec_plan.h"

#include <algorithm>

#include "lib/crypto/key_derivation.h"

namespace keelson::cni::agent {
namespace {

using netlink::XfrmPolicy;
using netlink::XfrmState;
using Direction = XfrmPolicy::Direction;

constexpr char kSalt[] = "keelson ipsec 1";
constexpr size_t kKeyBytes = 36, kMinSecret = 32;
constexpr uint32_t kFirstSpi = 256;  // lower ones are reserved (RFC 4303)

struct End {
  std::string name;
  IpAddress address;
};

Result<XfrmState> StateOf(const std::string& secret, const End& from, const End& to, int64_t epoch) {
  std::string info = from.name + "|" + to.name + "|" + from.address.ToString() + "|" + to.address.ToString() +
                     "|" + std::to_string(epoch);
  KEELSON_ASSIGN_OR_RETURN(std::string bytes, crypto::DeriveKey(secret, kSalt, info, kKeyBytes + 4));
  uint32_t spi = 0;
  for (size_t i = kKeyBytes; i < bytes.size(); ++i) spi = spi << 8 | static_cast<uint8_t>(bytes[i]);
  bytes.resize(kKeyBytes);
  return XfrmState{from.address, to.address, std::max(spi, kFirstSpi), kIpsecReqid, std::move(bytes)};
}

class IpsecPlanner {
 public:
  IpsecPlanner(const Plan& plan, const NodeMap& nodes, const std::vector<std::string>& secrets, int64_t epoch)
      : plan_(plan), nodes_(nodes), secrets_(secrets), epoch_(epoch) {}

  Result<IpsecPlan> Run(const Config& config) {
    const NodeInfo& self = nodes_.at(config.node_name);
    for (const PeerPlan& peer : plan_.peers) {
      if (peer.address) KEELSON_RETURN_IF_ERROR(AddPeer({self.name, *plan_.underlay}, self, peer));
    }
    for (const IpPrefix& own : plan_.pod_cidrs) {
      AddPolicy({Direction::kOut, Everything(own), own, kPriorityOwn});
    }
    for (const IpPrefix& cidr : config.cluster_cidrs) {
      AddPolicy({Direction::kOut, Everything(cidr), cidr, kPriorityBlock, true});
    }
    return std::move(out_);
  }

 private:
  static IpPrefix Everything(const IpPrefix& like) { return IpPrefix(like.address(), 0).Masked(); }

  Result<> AddPeer(const End& own, const NodeInfo& self, const PeerPlan& peer) {
    End other{peer.name, *peer.address};
    KEELSON_ASSIGN_OR_RETURN(XfrmState sending, StateOf(secrets_[0], own, other, epoch_));
    XfrmPolicy::Tunnel there{own.address, other.address, sending.spi, kIpsecReqid};
    XfrmPolicy::Tunnel back{other.address, own.address, 0, kIpsecReqid};
    out_.states.push_back(std::move(sending));
    for (const std::string& secret : secrets_) {
      for (int64_t hour : {epoch_ - 1, epoch_, epoch_ + 1}) {
        KEELSON_ASSIGN_OR_RETURN(XfrmState receiving, StateOf(secret, other, own, hour));
        out_.states.push_back(std::move(receiving));
      }
    }
    const NodeInfo& node = nodes_.at(peer.name);
    for (bool v4 : {true, false}) {
      for (const IpPrefix& theirs : OfFamily(peer.pod_cidrs, v4)) {
        for (const IpPrefix& ours : OfFamily(plan_.pod_cidrs, v4)) Protect(ours, theirs, there, back, true);
        if (const IpAddress* ip = self.AddressOf(v4)) {
          Protect(IpPrefix::Host(*ip), theirs, there, back, false);
        }
      }
      const IpAddress* ip = node.AddressOf(v4);
      if (!ip) continue;
      for (const IpPrefix& ours : OfFamily(plan_.pod_cidrs, v4)) {
        Protect(ours, IpPrefix::Host(*ip), there, back, true);
      }
    }
    return {};
  }

  static std::vector<IpPrefix> OfFamily(const std::vector<IpPrefix>& all, bool v4) {
    std::vector<IpPrefix> out;
    std::copy_if(all.begin(), all.end(), std::back_inserter(out),
                 [&](const IpPrefix& p) { return p.is_v4() == v4; });
    return out;
  }

  // `forwarded`: our end is pods behind this node; otherwise the node itself.
  void Protect(const IpPrefix& ours, const IpPrefix& theirs, const XfrmPolicy::Tunnel& there,
               const XfrmPolicy::Tunnel& back, bool forwarded) {
    AddPolicy({Direction::kOut, ours, theirs, kPriorityTunnel, false, there});
    AddPolicy({forwarded ? Direction::kForward : Direction::kIn, theirs, ours, kPriorityTunnel, false, back});
  }

  void AddPolicy(XfrmPolicy policy) { out_.policies.push_back(std::move(policy)); }

  const Plan& plan_;
  const NodeMap& nodes_;
  const std::vector<std::string>& secrets_;
  const int64_t epoch_;
  IpsecPlan out_;
};

}  // namespace

Result<std::vector<std::string>> ParseIpsecSecrets(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') continue;
    if (line.size() < kMinSecret) {
      return Error(Code::kInvalid,
                   "IPsec secret " + std::to_string(out.size() + 1) + " has less than 32 characters");
    }
    out.emplace_back(line);
  }
  if (out.empty()) return Error(Code::kInvalid, "no IPsec secret");
  return out;
}

Result<IpsecPlan> MakeIpsecPlan(const Config& config, const Plan& plan, const NodeMap& nodes,
                                const std::vector<std::string>& secrets, int64_t epoch) {
  if (!plan.underlay) return IpsecPlan{};
  return IpsecPlanner(plan, nodes, secrets, epoch).Run(config);
}

}  // namespace keelson::cni::agent
