// Gives every node its part of the cluster's pod addresses: spec.podCIDR and spec.podCIDRs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/common/options.h"
#include "lib/metrics/metrics.h"

namespace keelson::controllers {

// Hands out equal blocks of a range.
class CidrPool {
 public:
  // "10.244.0.0/16" in blocks of /24. kInvalid when that cannot be.
  static Result<CidrPool> Parse(const std::string& range, int block_bits);
  std::optional<std::string> Allocate();  // the next free block; nullopt when there is none
  // Blocks that overlap with a range are in use already: that of a node, maybe from a time with blocks of
  // another size, or where Services live. False when it has nothing to do with this pool.
  bool Reserve(const std::string& range);
  void Release(const std::string& range);  // as often as it was reserved or given out
  bool is_ipv6() const { return bytes_ == 16; }

 private:
  // The first of the blocks that overlap with a range, and how many.
  std::optional<std::pair<uint64_t, uint64_t>> Overlap(const std::string& range) const;
  std::string BlockAt(uint64_t index) const;
  void Count(metrics::Family& family) const;

  std::string range_;
  int bytes_ = 4, range_bits_ = 0, block_bits_ = 0;
  unsigned char base_[16] = {};
  uint64_t count_ = 0, next_ = 0;
  std::map<uint64_t, int> used_;  // by how many
};

class NodeIpamController : public Controller {
 public:
  // `pools`: one a family, in the order that podCIDRs are to have.
  NodeIpamController(client::RestClient api, client::InformerFactory& informers,
                     client::EventRecorder& events, Clock& clock, std::vector<CidrPool> pools);
  static Result<std::vector<CidrPool>> MakePools(const Options& options);
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;  // key: a node

 private:
  void ReserveAllOnce();
  // Notes the blocks that a node has.
  void Hold(const std::string& key, const corev1::Node& node);
  void Release(const std::vector<std::string>& blocks);

  client::RestClient api_;
  client::EventRecorder& events_;
  client::Informer<corev1::Node>& nodes_;
  // One worker: no lock.
  std::vector<CidrPool> pools_;
  bool reserved_ = false;
  std::map<std::string, std::vector<std::string>> held_;  // blocks by node
};

}  // namespace keelson::controllers
