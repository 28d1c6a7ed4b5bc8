// Requests at a steady rate, with bursts: kubeAPIQPS and kubeAPIBurst, eventRecordQPS and eventBurst.
#pragma once

#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::kubelet {

// The same API, where who comes too early waits, or is cancelled meanwhile. per_second 0: no bound.
client::RestClient LimitRequests(const client::RestClient& api, int per_second, int burst, Clock& clock);

}  // namespace keelson::kubelet
