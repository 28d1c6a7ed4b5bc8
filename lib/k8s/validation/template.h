// Internal to lib/k8s/validation: metadata of templates.
#pragma once

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// A claim template may have labels and annotations, and no other metadata.
void CheckTemplateMeta(const metav1::ObjectMeta& meta, const Path& path, FieldErrors& errors);

}  // namespace keelson::k8s
