// Internal to lib/k8s: metadata of what objects are made from.
#pragma once

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// Of a template of claims: labels and annotations, and nothing else.
void CheckTemplateMeta(const metav1::ObjectMeta& meta, const Path& path, FieldErrors& errors);

}  // namespace keelson::k8s
