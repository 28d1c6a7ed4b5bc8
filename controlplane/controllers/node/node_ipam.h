// Allocates each node's part of the cluster's pod addresses: spec.podCIDR and spec.podCIDRs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/options.h"
#include "lib/metrics/metrics.h"

namespace keelson::controllers {

// Allocates equal blocks of a range. Not thread safe.
class CidrPool {
 public:
  // Parses "10.244.0.0/16" with blocks of /24. kInvalid when the range or the block size is invalid.
  static Result<CidrPool> Parse(const std::string& range, int block_bits);
  std::optional<std::string> Allocate();  // the next free block; nullopt when the pool is exhausted
  // Marks all blocks that overlap with `range` as used: a node's CIDR (perhaps of another block size), or a
  // Service range. Returns false when the range is outside the pool.
  bool Reserve(const std::string& range);
  void Release(const std::string& range);  // call once for each Reserve() or Allocate()
  bool is_ipv6() const { return bytes_ == 16; }

 private:
  // The first block that overlaps with a range, and the number of such blocks.
  std::optional<std::pair<uint64_t, uint64_t>> Overlap(const std::string& range) const;
  std::string BlockAt(uint64_t index) const;
  void Count(metrics::Family& family) const;

  std::string range_;
  int bytes_ = 4, range_bits_ = 0, block_bits_ = 0;
  unsigned char base_[16] = {};
  uint64_t count_ = 0, next_ = 0;
  std::map<uint64_t, int> used_;  // number of reservations, by block
};

class NodeIpamController : public Controller {
 public:
  // `pools`: one per IP family, in the order of podCIDRs.
  NodeIpamController(client::RestClient api, client::InformerFactory& informers,
                     client::EventRecorder& events, Clock& clock, std::vector<CidrPool> pools);
  static Result<std::vector<CidrPool>> MakePools(const Options& options);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a node

 private:
  void ReserveAllOnce();
  // Records the node's blocks.
  void Hold(const std::string& key, const corev1::Node& node);
  void Release(const std::vector<std::string>& blocks);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::Node>& nodes_;
  // The single worker needs no lock.
  std::vector<CidrPool> pools_;
  bool reserved_ = false;
  std::map<std::string, std::vector<std::string>> held_;  // blocks by node
};

}  // namespace keelson::controllers
