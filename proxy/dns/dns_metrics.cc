#include "proxy/dns/dns_metrics.h"

namespace keelson::proxy::dns {
namespace {

constexpr uint16_t kTypesTold[] = {kTypeA,   kTypeAaaa, 15,       kTypeSoa,  kTypeCname, kTypePtr,
                                   kTypeTxt, kTypeNs,   kTypeSrv, 43,        48,         46,
                                   47,       50,        65,       kTypeIxfr, kTypeAxfr,  kTypeAny};

std::vector<double> SizeBounds() {
  return {0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16000, 32000, 48000, 64000};
}

}  // namespace

DnsMetrics::DnsMetrics() {
  static_assert(std::size(kTypesTold) < kTypes);
  auto& requests = metrics::Counter("coredns_dns_requests_total",
                                    "Counter of DNS requests made per zone, protocol and family.",
                                    {"family", "proto", "server", "type", "view", "zone"});
  auto& responses = metrics::Counter("coredns_dns_responses_total", "Counter of response status codes.",
                                     {"plugin", "rcode", "server", "view", "zone"});
  auto& request_size = metrics::Histograms("coredns_dns_request_size_bytes", "Size of the request in bytes.",
                                           SizeBounds(), {"proto", "server", "view", "zone"});
  auto& response_size =
      metrics::Histograms("coredns_dns_response_size_bytes", "Size of the returned response in bytes.",
                          SizeBounds(), {"proto", "server", "view", "zone"});
  duration_ = &metrics::Histograms("coredns_dns_request_duration_seconds",
                                   "Histogram of the time (in seconds) each request took per zone.",
                                   metrics::ExponentialBuckets(0.00025, 2, 16), {"server", "view", "zone"})
                   .HistogramWith({kServerLabel, "", kZoneLabel});
  cut_ = &metrics::Counter("keelson_dns_amplifying_answers_cut_total",
                           "Large answers by UDP beyond what one source is given, sent without records.")
              .With({});
  for (int tcp = 0; tcp < 2; ++tcp) {
    const std::string proto = tcp ? "tcp" : "udp";
    request_size_[tcp] = &request_size.HistogramWith({proto, kServerLabel, "", kZoneLabel});
    response_size_[tcp] = &response_size.HistogramWith({proto, kServerLabel, "", kZoneLabel});
    for (int v4 = 0; v4 < 2; ++v4) {
      for (size_t i = 0; i < kTypes; ++i) {
        std::string type(i < std::size(kTypesTold) ? TypeName(kTypesTold[i]) : "other");
        requests_[tcp][v4][i] = &requests.With({v4 ? "1" : "2", proto, kServerLabel, type, "", kZoneLabel});
      }
    }
  }
  const char* const kPlugins[] = {"", "kubernetes", "forward", "any"};
  for (size_t by = 0; by < responses_.size(); ++by) {
    for (size_t rcode = 0; rcode < kRcodes; ++rcode) {
      std::string name(RcodeName(static_cast<Rcode>(rcode)));
      responses_[by][rcode] = &responses.With({kPlugins[by], name, kServerLabel, "", kZoneLabel});
    }
  }
}

size_t DnsMetrics::TypeIndex(uint16_t type) {
  for (size_t i = 0; i < std::size(kTypesTold); ++i) {
    if (kTypesTold[i] == type) return i;
  }
  return kTypes - 1;
}

void DnsMetrics::CountRequest(bool tcp, bool v4, uint16_t type, size_t size) {
  requests_[tcp][v4][TypeIndex(type)]->Increment();
  request_size_[tcp]->Observe(static_cast<double>(size));
}

void DnsMetrics::CountAnswer(Answerer by, bool tcp, Rcode rcode, size_t size, std::chrono::nanoseconds took) {
  size_t code = static_cast<size_t>(rcode);
  responses_[static_cast<size_t>(by)][code < kRcodes ? code : kRcodes - 2]->Increment();
  response_size_[tcp]->Observe(static_cast<double>(size));
  duration_->Observe(std::chrono::duration<double>(took).count());
}

}  // namespace keelson::proxy::dns
