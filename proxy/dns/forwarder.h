// Forwards questions to servers of a suffix (stub domains) or to the node's own servers, with a cache.
//
//   question -> cache -> the same question under way? wait with it
//                     -> a healthy server of its group, another one when that fails (2 s each, 5 s in all)
//                     -> none answers: a stale answer, else SERVFAIL
//
// Two failures in a row make a server unhealthy. The forwarder then asks it for "." every half second, and any answer
// makes it healthy again. A forwarding loop is found by a random question that returns (as with CoreDNS's loop
// plugin); a looping group gets no more questions until its servers change.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/event/loop.h"
#include "proxy/dns/cache.h"
#include "proxy/dns/resolver.h"
#include "proxy/dns/udp_server.h"

namespace keelson::proxy::dns {

struct ForwarderOptions {
  std::string resolv_conf = "/etc/resolv.conf";  // empty: `servers` alone
  std::vector<Listen> servers;                   // instead of resolv.conf's, when not empty
  std::vector<std::pair<std::string, std::vector<Listen>>> stub_domains;
  std::vector<IpAddress> own_ips;  // never asked
  size_t max_concurrent = 1000;
  std::chrono::milliseconds timeout = std::chrono::seconds(5), try_timeout = std::chrono::seconds(2);
  std::chrono::milliseconds probe_period{500}, file_period = std::chrono::seconds(5);
  CacheOptions cache;
};

class Forwarder : public Resolver {
 public:
  // kInvalid: a stub domain's name.
  static Result<std::unique_ptr<Forwarder>> Create(ForwarderOptions options,
                                                   std::shared_ptr<event::Loop> loop, Clock& clock);
  // Pending questions get no answer. Not on the loop's thread.
  ~Forwarder() override;
  void Resolve(const Question& question, Done done) override;

 private:
  struct State;
  explicit Forwarder(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace keelson::proxy::dns
