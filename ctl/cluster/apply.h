// Writes wanted objects to an API server.
#pragma once

#include <chrono>
#include <ostream>

#include "ctl/cluster/objects.h"
#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

// Creates an object, or replaces one that exists where the wish says so. Tries again for `patience` while the server cannot
// be reached or does not know the right of this user yet, which a binding gives it a moment after it is written.
Result<> Apply(const client::RestClient& api, const WantedObject& wanted, std::chrono::seconds patience,
               Clock& clock = Clock::Real());
Result<> Apply(const client::RestClient& api, const WantedObjects& wanted, std::chrono::seconds patience,
               Clock& clock = Clock::Real());

// What a dry run says of them.
void Describe(const WantedObjects& wanted, std::ostream& out);

}  // namespace keelson::ctl
