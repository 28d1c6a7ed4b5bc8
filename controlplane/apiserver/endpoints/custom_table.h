// Tables of custom resources: the columns that their definitions name.
#pragma once

#include <string>

#include "controlplane/apiextensions/custom_resource.h"
#include "lib/base/clock.h"

namespace keelson::apiserver {

// `columnDefinitions` of a meta.k8s.io Table, as a JSON array: the name, and the columns of the row's version.
std::string CustomColumnsJson(const apiextensions::CustomRow& row);
// The cells of an object, as a JSON array, with ages as of `now`.
std::string CustomCellsJson(const apiextensions::CustomRow& row, const api::Message& object, WallTime now);

}  // namespace keelson::apiserver
