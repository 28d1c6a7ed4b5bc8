// What a DELETE of one object answers.
#pragma once

#include "lib/api/scheme.h"

namespace keelson::api {

// true: the object as it was last (ReturnDeletedObject of upstream's registries); false: a Status.
bool DeleteReturnsObject(const ResourceInfo& resource);

}  // namespace keelson::api
