// All that announces load balancer addresses in a daemon: its parts, and their threads.
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
  // `informers` are the daemon's own: Services, EndpointSlices and this node are followed there.
  Announcing(AnnouncerOptions options, const std::shared_ptr<client::Transport>& transport,
             client::InformerFactory& informers);

  // Those informers have synced.
  void MarkSynced() { announcer_.MarkSynced(); }
  // "announce-responder" answers neighbours, "announce-links" follows the machine's links and addresses,
  // "announce-leases" the Leases; "announcer" takes part in the elections. Where Leases cannot be read
  // nothing is announced, and the daemon goes on.
  void AddServices(ServiceGroup& group);

 private:
  client::InformerFactory leases_;
  Responder responder_;
  Announcer announcer_;
};

}  // namespace keelson::proxy
