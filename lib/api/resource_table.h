// Internal to lib/api: the table behind scheme.h.
#pragma once

#include <cstddef>

#include "lib/api/scheme.h"

namespace keelson::api {

extern const ResourceInfo kResourceTable[];
extern const size_t kResourceTableSize;

}  // namespace keelson::api
