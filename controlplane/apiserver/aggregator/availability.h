// Whether an APIService can answer: its Service exists, has endpoints, and the server behind it answers discovery.
#pragma once

#include <stop_token>
#include <string>

#include "controlplane/apiserver/aggregator/api_services.h"
#include "controlplane/apiserver/aggregator/extension_clients.h"
#include "lib/base/wall_time.h"

namespace keelson::apiserver {

// The condition Available, in upstream's words.
struct Availability {
  std::string status, reason, message;
  bool operator==(const Availability&) const = default;

  bool ok() const { return status == "True"; }
  static Availability Local();
  static Availability Passed();
};

// What the Service and its EndpointSlices in the cache say; Passed() when they do not speak against it.
Availability CheckService(const storage::Store& store, const ApiServiceEntry& service);

// Asks the extension server for its discovery, several times at once; one good answer is enough. Takes at most five
// seconds. The empty text: it answers; else why not.
std::string ProbeDiscovery(ExtensionClients& clients, const ApiServiceEntry& service, std::stop_token stop);

// Writes the condition into the status; false when nothing changes. The time of the transition changes with the status
// only.
bool SetAvailable(apiregistrationv1::APIService& service, const Availability& availability, WallTime now);

}  // namespace keelson::apiserver
