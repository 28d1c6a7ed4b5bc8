// Probes that take no thread: plain HTTP and TCP to an address, put together once and made again and again.
#pragma once

#include <memory>

#include "kubelet/probe/handler.h"
#include "kubelet/probe/socket_prober.h"

namespace keelson::kubelet {

// Null for handlers that are none of these: commands, gRPC, https, names that have to be looked up or cannot
// be.
std::shared_ptr<const PreparedProbe> PrepareSocketProbe(SocketProber& sockets,
                                                        const corev1::ProbeHandler& handler,
                                                        const HandlerTarget& target);

// What a probe says of an attempt to connect.
ProbeOutcome OutcomeOfDial(const Result<SocketProber::Answer>& answer);

}  // namespace keelson::kubelet
