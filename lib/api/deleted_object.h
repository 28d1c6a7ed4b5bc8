// The response to a DELETE of one object.
#pragma once

#include "lib/api/scheme.h"

namespace keelson::api {

// True: the object in its last state (ReturnDeletedObject in upstream's registries). False: a Status.
bool DeleteReturnsObject(const ResourceInfo& resource);

}  // namespace keelson::api
