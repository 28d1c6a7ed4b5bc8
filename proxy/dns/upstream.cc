#include "proxy/dns/upstream.h"

#include <algorithm>

#include "lib/base/log.h"

namespace keelson::proxy::dns {
namespace {

constexpr char kProxyName[] = "forward";  // the plugin, where CoreDNS counts

}  // namespace

Upstream::Upstream(event::Loop& loop, Listen server, std::chrono::milliseconds probe_period)
    : loop_(loop),
      server_(server),
      probe_period_(probe_period),
      name_((server.ip.is_v4() ? server.ip.ToString() : "[" + server.ip.ToString() + "]") + ":" +
            std::to_string(server.port)),
      timer_(loop) {}

void Upstream::Count(int rcode, std::chrono::nanoseconds took) {
  static auto& requests =
      metrics::Counter("coredns_forward_requests_total", "Counter of requests made per upstream.", {"to"});
  static auto& responses = metrics::Counter("coredns_forward_responses_total",
                                            "Counter of responses received per upstream.", {"rcode", "to"});
  static auto& duration = metrics::Histograms(
      "coredns_proxy_request_duration_seconds", "Histogram of the time each request took.",
      metrics::ExponentialBuckets(0.00025, 2, 16), {"proxy_name", "rcode", "to"});
  requests.With({name_}).Increment();
  if (rcode >= 0) {
    std::string code(RcodeName(static_cast<Rcode>(rcode)));
    responses.With({code, name_}).Increment();
    duration.HistogramWith({kProxyName, code, name_}).Observe(std::chrono::duration<double>(took).count());
    failures_ = 0;
    return;
  }
  if (++failures_ != kFailures) return;
  log::Warn("DNS server does not answer", {{"server", name_}});
  timer_.Start(probe_period_, [this] { Probe(); });
}

void Upstream::Probe() {
  static auto& failures =
      metrics::Counter("coredns_proxy_healthcheck_failures_total",
                       "Counter of the number of failed healthchecks.", {"proxy_name", "to"});
  if (healthy()) return;
  Question root{Name(1, '\0'), kTypeNs};
  probe_ =
      Exchange::Start(loop_, server_, root, std::chrono::seconds(1), [this](Result<StoredAnswer> answer) {
        if (answer) {
          failures_ = 0;
          log::Info("DNS server answers again", {{"server", name_}});
          return;
        }
        failures.With({kProxyName, name_}).Increment();
        timer_.Start(probe_period_, [this] { Probe(); });
      });
}

std::vector<std::shared_ptr<Upstream>> UpstreamGroup::Order() {
  std::vector<std::shared_ptr<Upstream>> out = servers;
  if (out.empty()) return out;
  std::rotate(out.begin(), out.begin() + static_cast<long>(next++ % out.size()), out.end());
  std::stable_partition(out.begin(), out.end(), [](const auto& server) { return server->healthy(); });
  return out;
}

bool UpstreamGroup::AnyHealthy() const {
  return std::any_of(servers.begin(), servers.end(), [](const auto& server) { return server->healthy(); });
}

}  // namespace keelson::proxy::dns
