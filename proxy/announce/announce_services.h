// The parts of a daemon that announce load balancer addresses, and their threads.
#pragma once

#include <memory>
#include <string>

#include "lib/base/service_group.h"
#include "lib/client/informer.h"
#include "lib/client/transport.h"
#include "proxy/announce/announcer.h"

namespace keelson::proxy {

class Announcing {
 public:
  // `informers`: the daemon's own factory, of Services, EndpointSlices and this Node. It must outlive this
  // object.
  Announcing(AnnouncerOptions options, const std::shared_ptr<client::Transport>& transport,
             client::InformerFactory& informers);

  // Call when those informers have synced. Thread safe.
  void MarkSynced() { announcer_.MarkSynced(); }
  // Adds "announce-responder" (answers neighbours), "announce-links" (follows the machine's links and
  // addresses), "announce-leases" (the informer of Leases) and "announcer" (elections). Where Leases cannot
  // be read nothing is announced, and the daemon goes on.
  void AddServices(ServiceGroup& group);

 private:
  client::InformerFactory leases_;
  Responder responder_;
  Announcer announcer_;
};

}  // namespace keelson::proxy
