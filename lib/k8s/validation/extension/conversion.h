// What a conversion webhook may change of an object's metadata: labels and annotations, nothing else.
#pragma once

#include <memory>

#include <boost/json/object.hpp>

#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::k8s {

// Checks that `converted`, the whole object that a webhook returned for `original`, is still the same object. kInternal
// in upstream's words: "must have the same name: a != b". Pure and thread safe.
Result<> ValidateConvertedObject(const metav1::ObjectMeta& original, const boost::json::object& converted);

// Gives `converted` the metadata of `original`, with the labels and annotations that the webhook returned. kInternal:
// these are of wrong types or not valid.
Result<> RestoreObjectMeta(const metav1::ObjectMeta& original, boost::json::object& converted);

}  // namespace keelson::k8s
