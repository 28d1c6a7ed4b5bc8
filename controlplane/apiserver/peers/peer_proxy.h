// Passes requests for resources that this server does not serve on to another API server of the cluster that does: while
// servers of two versions stand side by side, clients see the API of both (KEP-4020).
//
// The caller has authenticated and authorized the request; the peer learns the user from headers that it believes because
// of this server's client certificate, and authorizes it once more. A request is passed on once: the peer answers it
// itself. It holds no thread while it waits.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "controlplane/apiserver/aggregator/outgoing.h"
#include "controlplane/apiserver/endpoints/completions.h"
#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/peers/peer_clients.h"
#include "controlplane/apiserver/peers/peer_directory.h"

namespace keelson::apiserver {

class PeerProxy {  // thread safe
 public:
  // `directory` and `clients` must outlive this.
  PeerProxy(const PeerDirectory& directory, PeerClients& clients, IdentityHeaderNames headers);
  // Waits until no completion runs; later ones are dropped.
  ~PeerProxy();

  // Whether a peer serves the resource of the request, and the request has not come from a peer. Does not block.
  bool Wants(const Context& context) const;
  // Answers the request, now or later, by one of the peers that serve its resource. `done` is called once, on any thread,
  // when the response (context->status) is complete. 503 when none of them can be reached; 504 after context->deadline,
  // which streams do not have; 429 when too many requests wait for peers. Blocks until etcd has given the peers' addresses.
  void Handle(std::shared_ptr<Context> context, std::function<void()> done);

 private:
  Result<std::string> AddressFor(const RequestInfo& info) const;

  const PeerDirectory& directory_;
  PeerClients& clients_;
  const OutgoingRequests outgoing_;
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
  const std::shared_ptr<Completions> completions_ = std::make_shared<Completions>();
};

}  // namespace keelson::apiserver
