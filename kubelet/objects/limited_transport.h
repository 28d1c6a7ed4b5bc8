// Requests at a steady rate, with bursts: kubeAPIQPS and kubeAPIBurst, eventRecordQPS and eventBurst.
#pragma once

#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

// The same API with a rate limit: a request over the limit waits until it may run or is cancelled. per_second 0: no limit.
client::RestClient LimitRequests(const client::RestClient& api, int per_second, int burst, Clock& clock);

}  // namespace keelson::kubelet
