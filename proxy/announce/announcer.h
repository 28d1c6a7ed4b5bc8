// Announces load balancer addresses on the node's own links, like MetalLB in layer 2 mode: of all nodes that
// could, one answers for an address, and another takes over when that one fails.
//
//   handlers (informer threads) -> Announcer::Run (one thread): Leases of kube-system -> Responder (another)
//
// Services with externalTrafficPolicy Cluster, which any node can serve, share a few Leases by a hash of the
// Service's name. A Service with policy Local has a Lease of its own, for nodes with a ready endpoint. The
// cost for the API server depends on neither the number of nodes nor of connections.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/ip_range.h"
#include "lib/base/mutex.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"
#include "proxy/announce/election.h"
#include "proxy/announce/responder.h"

namespace keelson::proxy {

struct AnnouncerOptions {
  std::string node_name;
  AddressPool addresses;  // others are never announced
  std::string ns = "kube-system";
  ElectionTimes times;
};

// Whether a node may announce addresses: not while it is being deleted, has no network, or has the label
// node.kubernetes.io/exclude-from-external-load-balancers.
bool MayAnnounce(const corev1::Node& node);

class Announcer {
 public:
  // `api`: its requests should time out within a renewal. `leases`: gets an informer; the caller runs the
  // factory. All references must outlive this object.
  Announcer(AnnouncerOptions options, client::RestClient api, client::InformerFactory& leases,
            Responder& responder, Clock& clock = Clock::Real());

  // Handlers of informers. Thread safe. Null: the object was deleted. Keys are namespace/name.
  void OnService(const std::string& key, const corev1::Service* service);
  void OnSlice(const std::string& key, const discoveryv1::EndpointSlice* slice);
  void OnNode(const corev1::Node* node);
  // The informers of Services and EndpointSlices, and that of Leases, have synced. No Lease is taken before
  // both.
  void MarkSynced();
  void MarkLeasesSynced();

  // Takes part in elections until `stop`, then releases the Leases that it holds.
  Result<> Run(std::stop_token stop);

 private:
  struct Offer {
    std::string uid;
    std::set<IpAddress> addresses;
    bool local = false;  // external policy
    bool operator==(const Offer&) const = default;
  };
  struct Group {  // by the name of its Lease
    std::set<IpAddress> addresses;
    bool eligible = false;
  };
  struct Contest {
    Candidacy candidacy;
    coordinationv1::Lease lease;  // behind the candidacy's record
    SteadyTime written;           // when we last stored it
  };

  void Wake() KEELSON_REQUIRES(mutex_);
  std::map<std::string, Group> Groups() const KEELSON_REQUIRES(mutex_);
  // Returns when to look again at the latest.
  SteadyTime Round(const client::RestClient& api, const std::map<std::string, Group>& groups);
  void Observe(const std::string& name, Contest& contest);
  void Store(const client::RestClient& api, const std::string& name, Contest& contest,
             const coordinationv1::LeaseSpec& spec);
  SteadyTime Forget(const client::RestClient& api, const std::string& name, Contest& contest);
  void GiveUp();

  const AnnouncerOptions options_;
  const client::RestClient api_;
  client::Informer<coordinationv1::Lease>& leases_;
  Responder& responder_;
  Clock& clock_;

  Mutex mutex_;
  CondVar wake_;
  std::map<std::string, Offer> offers_ KEELSON_GUARDED_BY(mutex_);  // by Service
  std::map<std::string, std::string> local_slices_
      KEELSON_GUARDED_BY(mutex_);                                         // those with a ready endpoint here
  std::map<std::string, int> local_services_ KEELSON_GUARDED_BY(mutex_);  // and how many each Service has
  bool may_announce_ KEELSON_GUARDED_BY(mutex_) = false;
  bool synced_ KEELSON_GUARDED_BY(mutex_) = false, leases_synced_ KEELSON_GUARDED_BY(mutex_) = false;
  bool changed_ KEELSON_GUARDED_BY(mutex_) = true;

  std::map<std::string, Contest> contests_;  // Run's thread only
};

}  // namespace keelson::proxy
