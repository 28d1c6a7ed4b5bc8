// The cluster's DNS on a node: Services and EndpointSlices become the zone, which is answered from memory over UDP and
// TCP; other questions go to the node's own servers.
//
//   informers -> OnService, OnSlice -> Zone --Follow, one snapshot a batch--> Responder <- UDP, TCP
//                                                                             Responder -> Forwarder
//
// Until MarkSynced() the answer for names of the cluster is SERVFAIL, since a missing record does not yet mean that
// the name does not exist. Other names wait for the API for a short time only.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/event/loop.h"
#include "proxy/dns/address_writer.h"
#include "proxy/dns/cluster_dns_options.h"
#include "proxy/dns/forwarder.h"
#include "proxy/dns/responder.h"
#include "proxy/dns/tcp_server.h"
#include "proxy/dns/udp_server.h"
#include "proxy/dns/zone/zone.h"

namespace keelson::proxy::dns {

class ClusterDns {
 public:
  // Binds the sockets; the node need not have the addresses yet.
  static Result<std::unique_ptr<ClusterDns>> Create(const ClusterDnsOptions& options, Clock& clock);
  ~ClusterDns();

  // Thread safe; null: deleted. Keys are namespace/name.
  void OnService(const std::string& key, const api::core::v1::Service* service);
  void OnSlice(const std::string& key, const api::discovery::v1::EndpointSlice* slice);
  void MarkSynced();

  // Whether packets to this Service are for this server. The dataplane must then leave the Service alone: it would
  // send packets to other endpoints, or reject them if there are none.
  bool IsFor(const api::core::v1::Service& service) const;
  // The zone is complete: answer from it.
  bool Ready() const;
  const std::vector<IpAddress>& addresses() const { return options_.addresses; }
  std::vector<uint16_t> udp_ports() const { return udp_->ports(); }

  // Each runs on its own thread until `stop`. WriteAddresses tells network policies by domain name which addresses answers
  // have (address_writer.h). Follow publishes changes of the zone. It calls `on_first` when the zone
  // is complete or the API does not answer, and ends with its error.
  Result<> ServeUdp(std::stop_token stop) { return udp_->Run(stop); }
  Result<> WriteAddresses(std::stop_token stop) { return addresses_->Run(std::move(stop)); }
  Result<> Follow(std::stop_token stop, const std::function<Result<>()>& on_first);

 private:
  ClusterDns(const ClusterDnsOptions& options, Zone zone);
  void AwaitSync(std::stop_token stop);
  void AwaitChange(std::stop_token stop);
  void Publish();

  const ClusterDnsOptions options_;
  std::shared_ptr<event::Loop> loop_;
  std::unique_ptr<AddressWriter> addresses_;
  std::unique_ptr<Responder> responder_;
  // The users of the responder and its resolver are destroyed before it: see the destructor.
  std::unique_ptr<Forwarder> forwarder_;
  std::unique_ptr<UdpServer> udp_;
  std::unique_ptr<TcpServer> tcp_;
  std::atomic<bool> ready_{false};

  Mutex mutex_;
  CondVar changed_;
  Zone zone_ KEELSON_GUARDED_BY(mutex_);
  bool synced_ KEELSON_GUARDED_BY(mutex_) = false;
  bool pending_ KEELSON_GUARDED_BY(mutex_) = false;
};

}  // namespace keelson::proxy::dns
