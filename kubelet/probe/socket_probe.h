// Probes that need no thread: plain HTTP and TCP to an IP address.
#pragma once

#include <memory>

#include "kubelet/probe/handler.h"
#include "kubelet/probe/socket_prober.h"

namespace keelson::kubelet {

// Null for other handlers: commands, gRPC, HTTPS, host names. `sockets` has to outlive the result.
std::shared_ptr<const PreparedProbe> PrepareSocketProbe(SocketProber& sockets,
                                                        const corev1::ProbeHandler& handler,
                                                        const HandlerTarget& target);

// The outcome of a TCP probe.
ProbeOutcome OutcomeOfDial(const Result<SocketProber::Answer>& answer);

}  // namespace keelson::kubelet
