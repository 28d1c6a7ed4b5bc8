#include "controlplane/controllers/node/node_ipam.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "controlplane/controllers/common/metrics.h"
#include "controlplane/controllers/common/ownership.h"
#include "lib/api/meta.h"
#include "lib/base/json_quote.h"
#include "lib/base/log.h"

namespace keelson::controllers {
namespace {

constexpr int kMaxBlockBits = 16;  // at most 65536 blocks, as upstream
constexpr int kBlockBits = 24, kBlockBitsIpv6 = 64;

// Splits "address/bits"; the address goes to `bytes`. Returns 4 or 16 and the bits, or nullopt.
std::optional<std::pair<int, int>> ParseCidr(const std::string& text, unsigned char* bytes) {
  size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  int bits = -1;
  auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const std::string address = text.substr(0, slash);
  int size = inet_pton(AF_INET, address.c_str(), bytes) == 1    ? 4
             : inet_pton(AF_INET6, address.c_str(), bytes) == 1 ? 16
                                                                : 0;
  if (size == 0 || bits < 0 || bits > size * 8) return std::nullopt;
  return std::pair(size, bits);
}

}  // namespace

Result<CidrPool> CidrPool::Parse(const std::string& range, int block_bits) {
  CidrPool pool;
  auto parsed = ParseCidr(range, pool.base_);
  if (!parsed) return Error(Code::kInvalid, "not a CIDR: " + range);
  std::tie(pool.bytes_, pool.range_bits_) = *parsed;
  pool.block_bits_ = block_bits;
  pool.range_ = range;
  if (block_bits < pool.range_bits_ || block_bits > pool.bytes_ * 8) {
    return Error(Code::kInvalid, "node mask /" + std::to_string(block_bits) + " does not fit into " + range);
  }
  if (block_bits - pool.range_bits_ > kMaxBlockBits) {
    return Error(Code::kInvalid, range + " has too many blocks of /" + std::to_string(block_bits));
  }
  for (int bit = pool.range_bits_; bit < pool.bytes_ * 8; ++bit) {
    pool.base_[bit / 8] = static_cast<unsigned char>(pool.base_[bit / 8] & ~(0x80 >> bit % 8));
  }
  pool.count_ = uint64_t{1} << (block_bits - pool.range_bits_);
  return pool;
}

std::string CidrPool::BlockAt(uint64_t index) const {
  unsigned char address[16];
  std::memcpy(address, base_, sizeof address);
  for (int bit = block_bits_ - 1; bit >= range_bits_; --bit, index >>= 1) {
    if (index & 1) address[bit / 8] = static_cast<unsigned char>(address[bit / 8] | 0x80 >> bit % 8);
  }
  char text[INET6_ADDRSTRLEN];
  inet_ntop(bytes_ == 4 ? AF_INET : AF_INET6, address, text, sizeof text);
  return std::string(text) + "/" + std::to_string(block_bits_);
}

std::optional<std::pair<uint64_t, uint64_t>> CidrPool::Overlap(const std::string& range) const {
  unsigned char address[16] = {};
  auto parsed = ParseCidr(range, address);
  if (!parsed || parsed->first != bytes_) return std::nullopt;
  const int bits = parsed->second;
  auto bit_of = [](const unsigned char* bytes, int bit) { return (bytes[bit / 8] & 0x80 >> bit % 8) != 0; };
  for (int bit = 0; bit < std::min(bits, range_bits_); ++bit) {
    if (bit_of(base_, bit) != bit_of(address, bit)) return std::nullopt;
  }
  // The blocks that match in the bits common to both prefixes.
  const int shared = std::clamp(bits, range_bits_, block_bits_) - range_bits_;
  uint64_t prefix = 0;
  for (int bit = range_bits_; bit < range_bits_ + shared; ++bit) {
    prefix = prefix << 1 | (bit_of(address, bit) ? 1 : 0);
  }
  const int rest = block_bits_ - range_bits_ - shared;
  return std::pair(prefix << rest, uint64_t{1} << rest);
}

std::optional<std::string> CidrPool::Allocate() {
  if (used_.size() >= count_) return std::nullopt;
  // Continues after the last block, so that released blocks are reused as late as possible.
  int tries = 0;
  for (; used_.count(next_); ++tries) next_ = (next_ + 1) % count_;
  TheMetrics().node_ipam_cidrset_allocation_tries_per_request.HistogramWith({range_}).Observe(tries);
  used_.emplace(next_, 1);
  std::string block = BlockAt(next_);
  Count(TheMetrics().node_ipam_cidrset_cidrs_allocations_total);
  next_ = (next_ + 1) % count_;
  return block;
}

void CidrPool::Count(metrics::Family& family) const {
  const std::vector<std::string> label = {range_};
  family.With(label).Increment();
  TheMetrics().node_ipam_cirdset_max_cidrs.With(label).Set(static_cast<double>(count_));
  TheMetrics().node_ipam_cidrset_usage_cidrs.With(label).Set(static_cast<double>(used_.size()) /
                                                             static_cast<double>(count_));
}

bool CidrPool::Reserve(const std::string& range) {
  const auto blocks = Overlap(range);
  if (!blocks) return false;
  for (uint64_t i = 0; i < blocks->second; ++i) ++used_[blocks->first + i];
  return true;
}

void CidrPool::Release(const std::string& range) {
  const auto blocks = Overlap(range);
  if (!blocks) return;
  for (uint64_t i = 0; i < blocks->second; ++i) {
    auto used = used_.find(blocks->first + i);
    if (used == used_.end() || --used->second > 0) continue;
    used_.erase(used);
    Count(TheMetrics().node_ipam_cidrset_cidrs_releases_total);
  }
}

namespace {

// The block size per family, IPv4 first: from the flags for single-stack or dual-stack.
Result<std::pair<int, int>> BlockSizes(const Options& options) {
  const auto& ranges = options.cluster_cidrs;
  const int one = options.node_cidr_mask_size, v4 = options.node_cidr_mask_size_ipv4,
            v6 = options.node_cidr_mask_size_ipv6;
  auto or_default = [](int size, int otherwise) { return size != 0 ? size : otherwise; };
  if (ranges.size() == 2) {
    if (one != 0) {
      return Error(Code::kInvalid, "usage of --node-cidr-mask-size is not allowed with dual-stack clusters");
    }
    return std::pair(or_default(v4, kBlockBits), or_default(v6, kBlockBitsIpv6));
  }
  const bool ipv6 = ranges[0].find(':') != std::string::npos;
  if (one != 0) {
    if (v4 != 0 || v6 != 0) {
      return Error(Code::kInvalid,
                   "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if "
                   "--node-cidr-mask-size is set. For dual-stack clusters please unset it.");
    }
    return std::pair(one, one);
  }
  if (ipv6 ? v4 != 0 : v6 != 0) {
    return Error(Code::kInvalid, ipv6 ? "usage of --node-cidr-mask-size-ipv4 is not allowed for a "
                                        "single-stack IPv6 cluster"
                                      : "usage of --node-cidr-mask-size-ipv6 is not allowed for a "
                                        "single-stack IPv4 cluster");
  }
  return std::pair(or_default(v4, kBlockBits), or_default(v6, kBlockBitsIpv6));
}

}  // namespace

Result<std::vector<CidrPool>> NodeIpamController::MakePools(const Options& options) {
  const auto& ranges = options.cluster_cidrs;
  if (ranges.empty()) {
    return Error(Code::kInvalid, "node CIDRs are to be allocated but no cluster CIDR is given");
  }
  if (ranges.size() > 2) {
    return Error(Code::kInvalid,
                 "len of ClusterCIDRs is:" + std::to_string(ranges.size()) + " > more than max allowed of 2");
  }
  KEELSON_ASSIGN_OR_RETURN(auto sizes, BlockSizes(options));
  std::vector<CidrPool> pools;
  for (const std::string& range : ranges) {
    const bool ipv6 = range.find(':') != std::string::npos;
    KEELSON_ASSIGN_OR_RETURN(CidrPool pool, CidrPool::Parse(range, ipv6 ? sizes.second : sizes.first));
    // Service ranges must not be given to nodes.
    for (const std::string& taken : options.service_cidrs) pool.Reserve(taken);
    pools.push_back(std::move(pool));
  }
  if (pools.size() == 2 && pools[0].is_ipv6() == pools[1].is_ipv6()) {
    return Error(Code::kInvalid,
                 "len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each "
                 "IPFamily)");
  }
  return pools;
}

NodeIpamController::NodeIpamController(client::RestClient api, client::InformerFactory& informers,
                                       client::EventRecorder& events, Clock& clock,
                                       std::vector<CidrPool> pools)
    : Controller("cidrallocator_node", clock),
      api_(std::move(api)),
      events_(events),
      nodes_(informers.Get<corev1::Node>()),
      pools_(std::move(pools)) {
  nodes_.AddHandler([this](const auto& change) { queue().Add(change.key); });
}

// Before the first allocation all used blocks must be known.
void NodeIpamController::ReserveAllOnce() {
  if (std::exchange(reserved_, true)) return;
  for (const auto& node : nodes_.List()) Hold(node->metadata().name(), *node);
}

void NodeIpamController::Hold(const std::string& key, const corev1::Node& node) {
  std::vector<std::string>& blocks = held_[key];
  const std::vector<std::string> before =
      std::exchange(blocks, {node.spec().pod_cidrs().begin(), node.spec().pod_cidrs().end()});
  for (const std::string& block : blocks) {
    bool of_a_pool = false;
    for (CidrPool& pool : pools_) of_a_pool |= pool.Reserve(block);
    if (!of_a_pool) {
      log::Warn("A node's pod addresses are not in the cluster's ranges",
                {{"node", key}, {"podCIDR", block}});
    }
  }
  Release(before);
}

void NodeIpamController::Release(const std::vector<std::string>& blocks) {
  for (const std::string& block : blocks) {
    for (CidrPool& pool : pools_) pool.Release(block);
  }
}

Result<Requeue> NodeIpamController::Reconcile(const std::string& key, std::stop_token stop) {
  ReserveAllOnce();
  auto node = nodes_.Get(key);
  if (!node || node->metadata().has_deletion_timestamp()) {
    auto it = held_.find(key);
    if (it == held_.end()) return Requeue{};
    Release(it->second);
    held_.erase(it);
    return Requeue{};
  }
  auto tell = [&](const std::string& reason) {
    events_.Record(*node, "Warning", reason, "Node " + key + " status is now: " + reason);
  };
  std::vector<std::string>& blocks = held_[key];
  if (const auto& has = node->spec().pod_cidrs(); !has.empty()) {
    // A new node of that name, or another writer set the CIDR first.
    if (blocks != std::vector<std::string>(has.begin(), has.end())) Hold(key, *node);
    return Requeue{};
  }
  if (blocks.empty()) {
    for (CidrPool& pool : pools_) {
      std::optional<std::string> block = pool.Allocate();
      if (!block) {
        Release(blocks);
        blocks.clear();
        tell("CIDRNotAvailable");
        return Error(Code::kUnavailable, "no pod addresses left for the node");
      }
      blocks.push_back(*block);
    }
  }
  std::string list;
  for (const std::string& block : blocks) list += (list.empty() ? "" : ",") + JsonQuoted(block);
  // The UID protects a new node of the same name; a retry sends the same blocks.
  Result<corev1::Node> patched = api_.With(stop).Patch<corev1::Node>(
      "", key, client::PatchType::kMerge,
      R"({"metadata":{"uid":)" + JsonQuoted(node->metadata().uid()) + R"(},"spec":{"podCIDR":)" +
          JsonQuoted(blocks.front()) + R"(,"podCIDRs":[)" + list + "]}}");
  if (patched || patched.error().Is(Code::kNotFound)) return Requeue{};
  tell("CIDRAssignmentFailed");
  return patched.error().Wrap("assign pod CIDR");
}

}  // namespace keelson::controllers
