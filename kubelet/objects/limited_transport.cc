#include "kubelet/objects/limited_transport.h"

#include <algorithm>

#include "lib/base/pause.h"
#include "lib/base/rate_limit.h"

namespace keelson::kubelet {

namespace {

class LimitedTransport : public client::Transport {
 public:
  LimitedTransport(client::RestClient way, int per_second, int burst, Clock& clock)
      : way_(std::move(way)), limit_(per_second, std::max(burst, 1), clock), clock_(clock) {}

  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    KEELSON_RETURN_IF_ERROR(AwaitTurn(stop));
    return way_.transport().Do(request, timeout, std::move(stop));
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    KEELSON_RETURN_IF_ERROR(AwaitTurn(stop));
    return way_.transport().Open(request, std::move(stop));
  }

 private:
  Result<> AwaitTurn(const std::stop_token& stop) {
    while (!limit_.Allow()) {
      if (!Pause(clock_, limit_.Wait(), stop)) {
        return Error(Code::kCancelled, "stopped while waiting for the client rate limiter");
      }
    }
    return {};
  }

  const client::RestClient way_;
  RateLimit limit_;
  Clock& clock_;
};

}  // namespace

client::RestClient LimitRequests(const client::RestClient& api, int per_second, int burst, Clock& clock) {
  if (per_second <= 0) return api;
  return client::RestClient(std::make_shared<LimitedTransport>(api, per_second, burst, clock));
}

}  // namespace keelson::kubelet
